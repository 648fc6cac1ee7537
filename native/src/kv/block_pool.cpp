#include "kv/block_pool.hpp"

#include <utility>

namespace mashbox::kv {
namespace {

uint32_t blocksFor(uint32_t tokens) { return tokens / BlockTokens + (tokens % BlockTokens != 0); }

} // namespace

BlockPool::BlockPool(uint32_t blocks) : references_(blocks, 0), free_(blocks) {
  for (uint32_t i = 0; i < blocks; ++i) free_[i] = BlockId{blocks - 1 - i};
}

BlockPool::BlockPool(uint32_t blocks, StatePool states) : BlockPool(blocks) { states_.emplace(std::move(states)); }

Result<BlockId> BlockPool::acquire() {
  if (free_.empty())
    return Error{ErrorKind::OutOfMemory, "all " + std::to_string(references_.size()) + " KV blocks are in use", "kv"};
  const BlockId id = free_.back();
  free_.pop_back();
  references_[static_cast<uint32_t>(id)] = 1;
  return id;
}

void BlockPool::retain(BlockId id) { ++references_[static_cast<uint32_t>(id)]; }

void BlockPool::release(BlockId id) {
  if (--references_[static_cast<uint32_t>(id)] == 0) free_.push_back(id);
}

bool BlockPool::shared(BlockId id) const { return references_[static_cast<uint32_t>(id)] > 1; }
uint32_t BlockPool::freeBlocks() const { return static_cast<uint32_t>(free_.size()); }
uint32_t BlockPool::totalBlocks() const { return static_cast<uint32_t>(references_.size()); }

Sequence::Sequence(BlockPool& pool) : pool_(&pool) {
  if (pool.states()) state_.emplace(*pool.states());
}

Sequence::Sequence(Sequence&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})), length_(std::exchange(other.length_, 0)),
      state_(std::exchange(other.state_, std::nullopt)) {}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    for (const BlockId id : blocks_) pool_->release(id);
    pool_ = other.pool_;
    blocks_ = std::exchange(other.blocks_, {});
    length_ = std::exchange(other.length_, 0);
    state_ = std::exchange(other.state_, std::nullopt);
  }
  return *this;
}

Sequence::~Sequence() {
  for (const BlockId id : blocks_) pool_->release(id);
}

uint32_t Sequence::length() const { return length_; }
std::span<const BlockId> Sequence::blocks() const { return blocks_; }

Result<void> Sequence::reserve(uint32_t tokens) {
  const size_t before = blocks_.size();
  while (blocks_.size() * BlockTokens < size_t{length_} + tokens) {
    const auto id = pool_->acquire();
    if (!id) {
      for (; blocks_.size() > before; blocks_.pop_back()) pool_->release(blocks_.back());
      return id.error();
    }
    blocks_.push_back(*id);
  }
  if (!state_) return {};
  auto prepared = state_->prepare();
  if (!prepared)
    for (; blocks_.size() > before; blocks_.pop_back()) pool_->release(blocks_.back());
  return prepared;
}

void Sequence::advance(uint32_t tokens) {
  length_ += tokens;
  if (state_) state_->advance(length_);
}

void Sequence::cutBlocks() {
  for (; blocks_.size() > blocksFor(length_); blocks_.pop_back()) pool_->release(blocks_.back());
}

uint32_t Sequence::truncate(uint32_t length) {
  if (length >= length_) return length_;
  length_ = state_ ? state_->truncate(length_, length) : length;
  cutBlocks();
  return length_;
}

void Sequence::spoil() {
  if (!state_) return;
  length_ = state_->spoil();
  cutBlocks();
}

Sequence Sequence::fork(uint32_t length) const {
  Sequence copy(*pool_);
  length = length < length_ ? length : length_;
  if (state_) {
    const auto snapshot = state_->latest(length_, length, BlockTokens);
    length = snapshot ? snapshot->length() : 0;
    if (snapshot) copy.state_->restore(*snapshot);
  }
  const uint32_t whole = length / BlockTokens;
  copy.blocks_.assign(blocks_.begin(), blocks_.begin() + whole);
  for (const BlockId id : copy.blocks_) pool_->retain(id);
  copy.length_ = whole * BlockTokens;
  return copy;
}

Result<Snapshot> Sequence::snapshot() const {
  if (!state_ || length_ == 0) return Error{ErrorKind::Rejected, "snapshot: there is no recurrent state to keep", "snapshot"};
  return state_->snapshot(length_);
}

Result<void> Sequence::remember() {
  auto taken = snapshot();
  if (!taken) return taken.error();
  state_->remember(std::move(*taken));
  return {};
}

void Sequence::forget() {
  if (state_) state_->forget();
}

Result<void> Sequence::restore(const Snapshot& snapshot) {
  if (!state_ || snapshot.length() > length_)
    return Error{ErrorKind::Rejected, "snapshot: it stands behind " + std::to_string(snapshot.length()) + " tokens, the sequence has " + std::to_string(length_), "snapshot"};
  if (snapshot.length() < length_) state_->truncate(length_, snapshot.length());
  state_->restore(snapshot);
  length_ = snapshot.length();
  cutBlocks();
  return {};
}

} // namespace mashbox::kv
