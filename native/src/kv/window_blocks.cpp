#include "kv/window_blocks.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::kv {

uint32_t WindowPool::blocksPerSequence(uint32_t window, uint32_t batchTokens, uint32_t contextLength) {
  const uint64_t tokens = uint64_t{window} + batchTokens;
  const uint32_t most = blocksOf(contextLength);
  return tokens >= contextLength ? most : std::min(most, blocksOf(static_cast<uint32_t>(tokens)) + 1);
}

WindowBlocks::WindowBlocks(WindowBlocks&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})), first_(std::exchange(other.first_, 0)) {}

WindowBlocks& WindowBlocks::operator=(WindowBlocks&& other) noexcept {
  if (this == &other) return *this;
  clear();
  pool_ = other.pool_;
  blocks_ = std::exchange(other.blocks_, {});
  first_ = std::exchange(other.first_, 0);
  return *this;
}

WindowBlocks::~WindowBlocks() { clear(); }

void WindowBlocks::clear() {
  for (const BlockId id : blocks_) pool_->release(id);
  blocks_.clear();
  first_ = 0;
}

uint32_t WindowBlocks::firstSeen(uint32_t length) const { return length < pool_->window ? 0 : (length - pool_->window + 1) / BlockTokens; }

bool WindowBlocks::reaches(uint32_t length) const { return first_ <= firstSeen(length); }

Result<void> WindowBlocks::reserve(uint32_t length, uint32_t tokens) {
  const uint32_t seen = firstSeen(length);
  if (seen > first_) {
    const uint32_t gone = std::min(seen - first_, static_cast<uint32_t>(blocks_.size()));
    for (uint32_t i = 0; i < gone; ++i) pool_->release(blocks_[i]);
    blocks_.erase(blocks_.begin(), blocks_.begin() + gone);
    first_ = seen;
  }
  const size_t before = blocks_.size();
  while ((first_ + blocks_.size()) * BlockTokens < size_t{length} + tokens) {
    const auto id = pool_->acquire();
    if (!id) {
      for (; blocks_.size() > before; blocks_.pop_back()) pool_->release(blocks_.back());
      return Error{id.error().kind, id.error().message + " by sliding windows", id.error().subject};
    }
    blocks_.push_back(*id);
  }
  return {};
}

uint64_t WindowBlocks::room(uint32_t length) const {
  const uint32_t seen = firstSeen(length);
  uint64_t blocks = first_ + blocks_.size() + pool_->freeBlocks();
  for (uint32_t i = 0; i < blocks_.size() && first_ + i < seen; ++i) blocks += !pool_->shared(blocks_[i]);
  return blocks * BlockTokens - length;
}

void WindowBlocks::truncate(uint32_t length) {
  const uint32_t end = std::max(blocksOf(length), first_);
  for (; first_ + blocks_.size() > end; blocks_.pop_back()) pool_->release(blocks_.back());
  if (blocks_.empty() && length == 0) first_ = 0;
}

WindowBlocks WindowBlocks::fork(uint32_t length) const {
  WindowBlocks copy(*pool_);
  const uint32_t end = std::max(length / BlockTokens, first_);
  copy.first_ = first_;
  copy.blocks_.assign(blocks_.begin(), blocks_.begin() + (end - first_));
  for (const BlockId id : copy.blocks_) pool_->retain(id);
  return copy;
}

} // namespace mashbox::kv
