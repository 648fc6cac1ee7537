#include "kv/block_counts.hpp"

#include <string>

namespace mashbox::kv {

BlockCounts::BlockCounts(uint32_t blocks) : references_(blocks, 0), free_(blocks) {
  for (uint32_t i = 0; i < blocks; ++i) free_[i] = BlockId{blocks - 1 - i};
}

Result<BlockId> BlockCounts::acquire() {
  if (free_.empty())
    return Error{ErrorKind::OutOfMemory, "all " + std::to_string(references_.size()) + " KV blocks are in use", "kv"};
  const BlockId id = free_.back();
  free_.pop_back();
  references_[static_cast<uint32_t>(id)] = 1;
  return id;
}

void BlockCounts::retain(BlockId id) { ++references_[static_cast<uint32_t>(id)]; }

void BlockCounts::release(BlockId id) {
  if (--references_[static_cast<uint32_t>(id)] == 0) free_.push_back(id);
}

bool BlockCounts::shared(BlockId id) const { return references_[static_cast<uint32_t>(id)] > 1; }
uint32_t BlockCounts::freeBlocks() const { return static_cast<uint32_t>(free_.size()); }
uint32_t BlockCounts::totalBlocks() const { return static_cast<uint32_t>(references_.size()); }

} // namespace mashbox::kv
