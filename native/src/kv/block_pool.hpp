#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::kv {

inline constexpr uint32_t BlockTokens = 32;

enum class BlockId : uint32_t {};

/// Reference counts of a fixed set of KV blocks. Pure bookkeeping: the memory behind the ids belongs to the backend.
class BlockPool {
public:
  explicit BlockPool(uint32_t blocks);
  Result<BlockId> acquire(); ///< with one reference; OutOfMemory when none is free
  void retain(BlockId id);
  void release(BlockId id);
  bool shared(BlockId id) const;
  uint32_t freeBlocks() const;
  uint32_t totalBlocks() const;

private:
  std::vector<uint32_t> references_;
  std::vector<BlockId> free_;
};

/// The KV cache of one token sequence: a table of blocks. Copy-on-write is the holder's business (`shared`).
class Sequence {
public:
  explicit Sequence(BlockPool& pool);
  Sequence(const Sequence&) = delete;
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;
  ~Sequence(); ///< releases every block

  uint32_t length() const;
  std::span<const BlockId> blocks() const;
  /// Room for `tokens` more; all or nothing.
  Result<void> reserve(uint32_t tokens);
  void advance(uint32_t tokens); ///< after their K and V were written
  void truncate(uint32_t length);
  /// A second sequence that shares the whole blocks of the first `length` tokens (rounded down to a block).
  Sequence fork(uint32_t length) const;

private:
  BlockPool* pool_;
  std::vector<BlockId> blocks_;
  uint32_t length_ = 0;
};

} // namespace mashbox::kv
