#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <vector>

namespace mashbox::kv {

inline constexpr uint32_t BlockTokens = 32;

enum class BlockId : uint32_t {};

/// Blocks that hold `tokens`.
constexpr uint32_t blocksOf(uint32_t tokens) { return tokens / BlockTokens + (tokens % BlockTokens != 0); }

/// Reference counts of a fixed set of KV blocks. Pure bookkeeping: the memory behind the ids belongs to the backend.
class BlockCounts {
public:
  explicit BlockCounts(uint32_t blocks);
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

} // namespace mashbox::kv
