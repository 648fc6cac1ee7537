#pragma once

#include "kv/state_pool.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mashbox::kv {

/// One reference to a state.
class StateHandle {
public:
  StateHandle(StatePool& pool, StateId id) : pool_(&pool), id_(id) {} ///< takes over the caller's reference
  StateHandle(StateHandle&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}
  StateHandle& operator=(StateHandle&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~StateHandle() {
    if (pool_) pool_->release(id_);
  }
  StateId id() const { return id_; }

private:
  StatePool* pool_; ///< null behind a move
  StateId id_;
};

/// The recurrent state of one sequence and the snapshots that it can go back to. A state that someone else holds, too, is copied
/// when the sequence goes on: `prepare` takes a new one, and the backend fills it from `source`.
class SequenceState {
public:
  explicit SequenceState(StatePool& pool) : pool_(&pool) {}

  /// A state that may be written; OutOfMemory where none is free.
  Result<void> prepare();
  /// After `prepare`.
  StateId id() const { return own_->id(); }
  /// Where the content of `id()` comes from before it goes on.
  std::optional<StateId> source() const { return source_ ? std::optional(source_->id()) : std::nullopt; }
  /// The state stands behind `length` tokens now.
  void advance(uint32_t length);

  /// The greatest length up to `wanted`, which is at most `length`, that the sequence of `length` tokens can go back to: within the
  /// last chunk, at a snapshot, or 0. Later snapshots are forgotten.
  uint32_t truncate(uint32_t length, uint32_t wanted);
  /// The state's content is lost: goes to the latest snapshot and returns its length, or 0.
  uint32_t spoil();
  /// Of the state behind its `length` tokens, of which there is at least one.
  Result<Snapshot> snapshot(uint32_t length) const;
  /// `truncate` and `fork` may go back to it. It is one of this sequence's own tokens.
  void remember(Snapshot snapshot);
  void forget() { snapshots_.clear(); }
  /// Goes on from there.
  void restore(const Snapshot& snapshot);
  /// The latest snapshot of at most `length` tokens in whole blocks of `multiple`; that of the present `current` tokens included, where one can be taken.
  std::optional<Snapshot> latest(uint32_t current, uint32_t length, uint32_t multiple) const;

private:
  StateId content() const { return source_ ? source_->id() : own_->id(); }

  StatePool* pool_;
  std::optional<StateHandle> own_, source_;
  uint32_t floor_ = 0; ///< the state can go back to this length in place
  std::vector<Snapshot> snapshots_; ///< rising lengths
};

} // namespace mashbox::kv
