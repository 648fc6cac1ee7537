#pragma once

#include "base/result.hpp"
#include "kv/sequence_state.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mashbox::kv {

inline constexpr uint32_t BlockTokens = 32;

enum class BlockId : uint32_t {};

/// Reference counts of a fixed set of KV blocks. Pure bookkeeping: the memory behind the ids belongs to the backend.
class BlockPool {
public:
  explicit BlockPool(uint32_t blocks);
  /// For a model with recurrent layers, whose sequences have a state besides their blocks.
  BlockPool(uint32_t blocks, StatePool states);
  Result<BlockId> acquire(); ///< with one reference; OutOfMemory when none is free
  void retain(BlockId id);
  void release(BlockId id);
  bool shared(BlockId id) const;
  uint32_t freeBlocks() const;
  uint32_t totalBlocks() const;
  StatePool* states() { return states_ ? &*states_ : nullptr; } ///< null without recurrent layers

private:
  std::vector<uint32_t> references_;
  std::vector<BlockId> free_;
  std::optional<StatePool> states_;
};

/// The KV cache of one token sequence: a table of blocks, and with recurrent layers a state. Copy-on-write of blocks is the holder's
/// business (`shared`).
class Sequence {
public:
  explicit Sequence(BlockPool& pool);
  Sequence(const Sequence&) = delete;
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;
  ~Sequence(); ///< releases every block

  uint32_t length() const;
  std::span<const BlockId> blocks() const;
  /// Null without recurrent layers.
  const SequenceState* state() const { return state_ ? &*state_ : nullptr; }
  /// Room for `tokens` more; all or nothing.
  Result<void> reserve(uint32_t tokens);
  void advance(uint32_t tokens); ///< after their K and V were written
  /// Cuts back to `length` tokens, or with recurrent layers to the nearest length below that the state can go back to. Returns the
  /// length that is left.
  uint32_t truncate(uint32_t length);
  /// A second sequence that shares the whole blocks of the first `length` tokens (rounded down to a block; with recurrent layers to
  /// the nearest snapshot at the end of a block).
  Sequence fork(uint32_t length) const;

  /// A step failed half way, perhaps with a part of it in the recurrent state: goes back to what is sure, as `truncate`.
  void spoil();

  /// The recurrent state as it is now. Rejected without recurrent layers or tokens; OutOfMemory when all snapshots are in use.
  Result<Snapshot> snapshot() const;
  /// Takes a snapshot that `truncate` and `fork` may go back to.
  Result<void> remember();
  /// Drops those of `remember`.
  void forget();
  /// Cuts back to a snapshot of this sequence's own tokens. Rejected where it is longer than the sequence.
  Result<void> restore(const Snapshot& snapshot);

private:
  BlockPool* pool_;
  void cutBlocks();

  std::vector<BlockId> blocks_;
  uint32_t length_ = 0;
  std::optional<SequenceState> state_;
};

} // namespace mashbox::kv
