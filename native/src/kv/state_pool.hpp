#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <vector>

namespace mashbox::kv {

enum class StateId : uint32_t {};

/// Reference counts of a fixed set of recurrent states: one for every sequence that runs, and some more for snapshots. Pure
/// bookkeeping, as BlockPool: the memory behind the ids belongs to the backend. A state with several holders is never written;
/// who wants to go on from it takes a copy of its own.
class StatePool {
public:
  /// `states` 0: the model has no recurrent layers.
  explicit StatePool(uint32_t states);
  Result<StateId> acquire(); ///< with one reference; OutOfMemory when none is free
  void retain(StateId id);
  void release(StateId id);
  bool shared(StateId id) const;
  uint32_t freeStates() const;
  uint32_t totalStates() const;

private:
  std::vector<uint32_t> references_;
  std::vector<StateId> free_;
};

/// A sequence's recurrent state as it was behind `length` tokens; keeps the state alive.
class Snapshot {
public:
  Snapshot(StatePool& pool, StateId state, uint32_t length);
  Snapshot(const Snapshot&);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot) noexcept;
  ~Snapshot();

  StateId state() const { return state_; }
  uint32_t length() const { return length_; }

private:
  StatePool* pool_; ///< null behind a move
  StateId state_;
  uint32_t length_;
};

} // namespace mashbox::kv
