#include "kv/state_pool.hpp"

#include <string>
#include <utility>

namespace mashbox::kv {

StatePool::StatePool(uint32_t sequences, uint32_t snapshots)
    : references_(sequences + snapshots, 0), snapshots_(references_.size(), 0), free_(references_.size()), freeSnapshots_(snapshots) {
  for (uint32_t i = 0; i < free_.size(); ++i) free_[i] = StateId{static_cast<uint32_t>(free_.size()) - 1 - i};
}

Result<StateId> StatePool::acquire() {
  if (free_.empty())
    return Error{ErrorKind::OutOfMemory, "all " + std::to_string(references_.size()) + " recurrent states are in use", "states"};
  const StateId id = free_.back();
  free_.pop_back();
  references_[static_cast<uint32_t>(id)] = 1;
  return id;
}

void StatePool::retain(StateId id) { ++references_[static_cast<uint32_t>(id)]; }

void StatePool::release(StateId id) {
  if (--references_[static_cast<uint32_t>(id)] == 0) free_.push_back(id);
}

bool StatePool::shared(StateId id) const { return references_[static_cast<uint32_t>(id)] > 1; }

Result<Snapshot> StatePool::snapshot(StateId id, uint32_t length) {
  if (snapshots_[static_cast<uint32_t>(id)] == 0 && freeSnapshots_ == 0)
    return Error{ErrorKind::OutOfMemory, "all snapshots of recurrent states are in use", "snapshots"};
  return Snapshot(*this, id, length);
}

void StatePool::retainSnapshot(StateId id) {
  retain(id);
  if (snapshots_[static_cast<uint32_t>(id)]++ == 0) --freeSnapshots_;
}

void StatePool::releaseSnapshot(StateId id) {
  if (--snapshots_[static_cast<uint32_t>(id)] == 0) ++freeSnapshots_;
  release(id);
}

Snapshot::Snapshot(StatePool& pool, StateId state, uint32_t length) : pool_(&pool), state_(state), length_(length) { pool_->retainSnapshot(state_); }
Snapshot::Snapshot(const Snapshot& other) : pool_(other.pool_), state_(other.state_), length_(other.length_) {
  if (pool_) pool_->retainSnapshot(state_);
}
Snapshot::Snapshot(Snapshot&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), state_(other.state_), length_(other.length_) {}

Snapshot& Snapshot::operator=(Snapshot other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(state_, other.state_);
  std::swap(length_, other.length_);
  return *this;
}

Snapshot::~Snapshot() {
  if (pool_) pool_->releaseSnapshot(state_);
}

} // namespace mashbox::kv
