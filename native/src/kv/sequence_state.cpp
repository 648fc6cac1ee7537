#include "kv/sequence_state.hpp"

#include <algorithm>

namespace mashbox::kv {

Result<void> SequenceState::prepare() {
  if (own_ && (source_ || !pool_->shared(own_->id()))) return {};
  const auto id = pool_->acquire();
  if (!id) return id.error();
  source_ = std::move(own_);
  own_.emplace(*pool_, *id);
  return {};
}

void SequenceState::advance(uint32_t length) {
  source_.reset();
  floor_ = std::max({floor_, length - std::min(length, StateRollback), length / StateChunk * StateChunk});
}

uint32_t SequenceState::truncate(uint32_t length, uint32_t wanted) {
  while (!snapshots_.empty() && snapshots_.back().length() > wanted) snapshots_.pop_back();
  return wanted == length || (own_ && wanted >= floor_) ? wanted : spoil();
}

uint32_t SequenceState::spoil() {
  if (!snapshots_.empty()) {
    const Snapshot nearest = snapshots_.back();
    restore(nearest);
    return nearest.length();
  }
  own_.reset();
  source_.reset();
  floor_ = 0;
  return 0;
}

Result<Snapshot> SequenceState::snapshot(uint32_t length) const { return pool_->snapshot(content(), length); }

void SequenceState::remember(Snapshot snapshot) {
  const auto after = std::lower_bound(snapshots_.begin(), snapshots_.end(), snapshot.length(), [](const Snapshot& s, uint32_t length) { return s.length() < length; });
  if (after == snapshots_.end() || after->length() != snapshot.length()) snapshots_.insert(after, std::move(snapshot));
}

void SequenceState::restore(const Snapshot& snapshot) {
  pool_->retain(snapshot.state());
  own_.emplace(*pool_, snapshot.state());
  source_.reset();
  floor_ = snapshot.length();
}

std::optional<Snapshot> SequenceState::latest(uint32_t current, uint32_t length, uint32_t multiple) const {
  if (own_ && current > 0 && current <= length && current % multiple == 0)
    if (auto now = snapshot(current)) return std::move(*now);
  for (auto at = snapshots_.rbegin(); at != snapshots_.rend(); ++at)
    if (at->length() <= length && at->length() % multiple == 0) return *at;
  return std::nullopt;
}

} // namespace mashbox::kv
