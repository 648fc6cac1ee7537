#include "kv/state_pool.hpp"

#include <string>
#include <utility>

namespace mashbox::kv {

StatePool::StatePool(uint32_t states) : references_(states, 0), free_(states) {
  for (uint32_t i = 0; i < states; ++i) free_[i] = StateId{states - 1 - i};
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
uint32_t StatePool::freeStates() const { return static_cast<uint32_t>(free_.size()); }
uint32_t StatePool::totalStates() const { return static_cast<uint32_t>(references_.size()); }

Snapshot::Snapshot(StatePool& pool, StateId state, uint32_t length) : pool_(&pool), state_(state), length_(length) { pool_->retain(state_); }
Snapshot::Snapshot(const Snapshot& other) : pool_(other.pool_), state_(other.state_), length_(other.length_) {
  if (pool_) pool_->retain(state_);
}
Snapshot::Snapshot(Snapshot&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), state_(other.state_), length_(other.length_) {}

Snapshot& Snapshot::operator=(Snapshot other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(state_, other.state_);
  std::swap(length_, other.length_);
  return *this;
}

Snapshot::~Snapshot() {
  if (pool_) pool_->release(state_);
}

} // namespace mashbox::kv
