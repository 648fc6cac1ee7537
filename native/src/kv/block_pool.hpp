#pragma once

#include "base/result.hpp"
#include "kv/block_counts.hpp"
#include "kv/sequence_state.hpp"
#include "kv/window_blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mashbox::kv {

/// The blocks of a context: those of layers that see the whole sequence, besides them those of sliding-window layers, and with recurrent
/// layers the states.
class BlockPool : public BlockCounts {
public:
  explicit BlockPool(uint32_t blocks) : BlockCounts(blocks) {}
  BlockPool(uint32_t blocks, std::optional<WindowPool> windows, std::optional<StatePool> states)
      : BlockCounts(blocks), windows_(std::move(windows)), states_(std::move(states)) {}
  BlockPool(uint32_t blocks, WindowPool windows) : BlockPool(blocks, std::move(windows), std::nullopt) {}
  BlockPool(uint32_t blocks, StatePool states) : BlockPool(blocks, std::nullopt, std::move(states)) {}
  WindowPool* windows() { return windows_ ? &*windows_ : nullptr; } ///< null without sliding windows
  StatePool* states() { return states_ ? &*states_ : nullptr; }     ///< null without recurrent layers

private:
  std::optional<WindowPool> windows_;
  std::optional<StatePool> states_;
};

/// The KV cache of one token sequence: a table of blocks, with sliding windows a second one that keeps the end only, and with recurrent
/// layers a state. Copy-on-write of blocks is the holder's business (`endsShared`).
class Sequence {
public:
  explicit Sequence(BlockPool& pool);
  Sequence(const Sequence&) = delete;
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;
  ~Sequence(); ///< releases every block

  uint32_t length() const;
  std::span<const BlockId> blocks() const;
  /// Null without sliding windows.
  const WindowBlocks* window() const { return window_ ? &*window_ : nullptr; }
  /// Whether a block that the next tokens go to belongs to another sequence, too.
  bool endsShared() const;
  /// Null without recurrent layers.
  const SequenceState* state() const { return state_ ? &*state_ : nullptr; }
  /// Room for `tokens` more; all or nothing. Gives back the window blocks that the next token does not see.
  Result<void> reserve(uint32_t tokens);
  /// The most tokens that its blocks can hold.
  uint32_t room() const;
  void advance(uint32_t tokens); ///< after their K and V were written
  /// Cuts back to `length` tokens, or with recurrent layers to the nearest length below that the state can go back to, or to 0 where
  /// the window before it is gone. Returns the length that is left. Blocks are there for any length since the latest `reserve`.
  uint32_t truncate(uint32_t length);
  /// A second sequence that shares the whole blocks of the first `length` tokens (rounded down to a block; with recurrent layers to
  /// the nearest snapshot at the end of a block), window blocks as far back as this one has them. Empty where the window before that
  /// length is gone.
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
  void cutBlocks();

  BlockPool* pool_;

  std::vector<BlockId> blocks_;
  uint32_t length_ = 0;
  std::optional<WindowBlocks> window_;
  std::optional<SequenceState> state_;
};

} // namespace mashbox::kv
