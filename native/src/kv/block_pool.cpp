#include "kv/block_pool.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace mashbox::kv {
Sequence::Sequence(BlockPool& pool) : pool_(&pool) {
  if (pool.windows()) window_.emplace(*pool.windows());
  if (pool.states()) state_.emplace(*pool.states());
}

Sequence::Sequence(Sequence&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})), length_(std::exchange(other.length_, 0)),
      window_(std::move(other.window_)), state_(std::exchange(other.state_, std::nullopt)) {}

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    for (const BlockId id : blocks_) pool_->release(id);
    pool_ = other.pool_;
    blocks_ = std::exchange(other.blocks_, {});
    length_ = std::exchange(other.length_, 0);
    window_ = std::move(other.window_);
    state_ = std::exchange(other.state_, std::nullopt);
  }
  return *this;
}

Sequence::~Sequence() {
  for (const BlockId id : blocks_) pool_->release(id);
}

uint32_t Sequence::length() const { return length_; }
std::span<const BlockId> Sequence::blocks() const { return blocks_; }

bool Sequence::endsShared() const {
  const auto shared = [](const BlockCounts& counts, std::span<const BlockId> blocks, size_t from) {
    const auto next = blocks.subspan(std::min(from, blocks.size()));
    return std::any_of(next.begin(), next.end(), [&](BlockId id) { return counts.shared(id); });
  };
  const size_t next = length_ / BlockTokens;
  return shared(*pool_, blocks_, next) || (window_ && shared(*pool_->windows(), window_->blocks(), next - window_->first()));
}

Result<void> Sequence::reserve(uint32_t tokens) {
  const size_t before = blocks_.size();
  const auto undone = [&](Result<void> failed) {
    for (; blocks_.size() > before; blocks_.pop_back()) pool_->release(blocks_.back());
    return failed;
  };
  while (blocks_.size() * BlockTokens < size_t{length_} + tokens) {
    const auto id = pool_->acquire();
    if (!id) return undone(id.error());
    blocks_.push_back(*id);
  }
  if (window_)
    if (auto reserved = window_->reserve(length_, tokens); !reserved) return undone(reserved);
  if (state_)
    if (auto prepared = state_->prepare(); !prepared) return undone(prepared);
  return {};
}

uint32_t Sequence::room() const {
  const uint64_t tokens = (blocks_.size() + uint64_t{pool_->freeBlocks()}) * BlockTokens - length_;
  const uint64_t both = window_ ? std::min(tokens, window_->room(length_)) : tokens;
  return static_cast<uint32_t>(std::min<uint64_t>(both, std::numeric_limits<uint32_t>::max()));
}

void Sequence::advance(uint32_t tokens) {
  length_ += tokens;
  if (state_) state_->advance(length_);
}

void Sequence::cutBlocks() {
  for (; blocks_.size() > blocksOf(length_); blocks_.pop_back()) pool_->release(blocks_.back());
  if (window_) window_->truncate(length_);
}

uint32_t Sequence::truncate(uint32_t length) {
  if (length >= length_) return length_;
  length_ = state_ ? state_->truncate(length_, length) : length;
  if (window_ && !window_->reaches(length_)) length_ = state_ ? state_->truncate(length_, 0) : 0;
  cutBlocks();
  return length_;
}

void Sequence::spoil() {
  if (!state_) return;
  length_ = state_->spoil();
  if (window_ && !window_->reaches(length_)) length_ = state_->truncate(length_, 0);
  cutBlocks();
}

Sequence Sequence::fork(uint32_t length) const {
  Sequence copy(*pool_);
  length = std::min(length, length_) / BlockTokens * BlockTokens;
  const auto snapshot = state_ ? state_->latest(length_, length, BlockTokens) : std::nullopt;
  if (state_) length = snapshot ? snapshot->length() : 0;
  if (window_ && !window_->reaches(length)) length = 0;
  if (length == 0) return copy;
  if (snapshot) copy.state_->restore(*snapshot);
  if (window_) copy.window_ = window_->fork(length);
  copy.blocks_.assign(blocks_.begin(), blocks_.begin() + length / BlockTokens);
  for (const BlockId id : copy.blocks_) pool_->retain(id);
  copy.length_ = length;
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
  if (window_ && !window_->reaches(snapshot.length()))
    return Error{ErrorKind::Rejected, "snapshot: the window before its " + std::to_string(snapshot.length()) + " tokens is gone", "snapshot"};
  if (snapshot.length() < length_) state_->truncate(length_, snapshot.length());
  state_->restore(snapshot);
  length_ = snapshot.length();
  cutBlocks();
  return {};
}

} // namespace mashbox::kv
