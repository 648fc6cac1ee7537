#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <vector>

namespace mashbox::kv {

enum class StateId : uint32_t {};

/// Recurrent layers fold whole chunks of tokens into their state; chunks begin at multiples of this.
inline constexpr uint32_t StateChunk = 64;
/// A state can go back by so many tokens within its last chunk.
inline constexpr uint32_t StateRollback = 8;

class StatePool;

/// A recurrent state as it was behind `length` tokens. Keeps the state alive; copies share it.
class Snapshot {
public:
  Snapshot(const Snapshot&);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot) noexcept;
  ~Snapshot();

  StateId state() const { return state_; }
  uint32_t length() const { return length_; }

private:
  friend class StatePool;
  Snapshot(StatePool& pool, StateId state, uint32_t length);

  StatePool* pool_; ///< null behind a move
  StateId state_;
  uint32_t length_;
};

/// Reference counts of a fixed set of recurrent states: one for every sequence that runs, and `snapshots` more. Pure bookkeeping, as
/// BlockPool: the memory behind the ids belongs to the backend. A state with several holders is never written; who wants to go on
/// from it takes a copy of its own.
class StatePool {
public:
  StatePool(uint32_t sequences, uint32_t snapshots);
  Result<StateId> acquire(); ///< with one reference; OutOfMemory when none is free
  void retain(StateId id);
  void release(StateId id);
  bool shared(StateId id) const;
  /// OutOfMemory when `snapshots` other states have one.
  Result<Snapshot> snapshot(StateId id, uint32_t length);

  uint32_t freeStates() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t totalStates() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t freeSnapshots() const { return freeSnapshots_; }

private:
  friend class Snapshot;
  void retainSnapshot(StateId id);
  void releaseSnapshot(StateId id);

  std::vector<uint32_t> references_, snapshots_; ///< the former include the latter
  std::vector<StateId> free_;
  uint32_t freeSnapshots_;
};

} // namespace mashbox::kv
