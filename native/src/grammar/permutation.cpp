#include "grammar/permutation.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::grammar {

uint32_t PermutationTable::add(Permutation permutation) {
  permutations_.push_back(std::move(permutation));
  return static_cast<uint32_t>(permutations_.size() - 1);
}

uint32_t PermutationTable::intern(State state) {
  const auto [place, added] = ids_.emplace(state, static_cast<uint32_t>(states_.size()));
  if (added) states_.push_back(std::move(state));
  return place->second;
}

uint32_t PermutationTable::start(uint32_t permutation) {
  const Permutation& p = permutations_[permutation];
  return intern(State(p.ordered ? 2 : 1 + (p.items.size() + 63) / 64, 0));
}

bool PermutationTable::available(const Permutation& p, const State& state, uint32_t item) const {
  if (p.max != UINT32_MAX && state[0] >= p.max) return false;
  if (!p.ordered) return p.items[item].many || (state[1 + item / 64] >> item % 64 & 1) == 0;
  return item >= (state[1] >> 1);
}

/// An ordered state holds 2 · the first item that may come, plus one when that item is a required one which has come already.
PermutationTable::State PermutationTable::step(const Permutation& p, State state, uint32_t item) const {
  // A count beyond what `min` and `max` ask for says nothing more.
  const uint64_t enough = p.max != UINT32_MAX ? p.max : std::max<uint64_t>(p.min, 1);
  state[0] = std::min(state[0] + 1, enough);
  if (!p.ordered) state[1 + item / 64] |= uint64_t{1} << item % 64;
  else state[1] = p.items[item].many ? 2 * uint64_t{item} + 1 : 2 * (uint64_t{item} + 1);
  return state;
}

/// Whether enough items can come, and not too many must.
bool PermutationTable::feasible(const Permutation& p, const State& state) const {
  if (p.max == UINT32_MAX && p.min <= state[0]) return true;
  uint64_t required = 0, most = 0;
  bool endless = false;
  for (uint32_t i = 0; i < p.items.size(); ++i) {
    const bool used = p.ordered ? i < (state[1] >> 1) || (i == (state[1] >> 1) && (state[1] & 1) != 0)
                                : (state[1 + i / 64] >> i % 64 & 1) != 0;
    const bool open = p.ordered ? i >= (state[1] >> 1) : !used || p.items[i].many;
    required += p.items[i].required && !used;
    most += open;
    endless |= open && p.items[i].many;
  }
  const uint64_t needed = std::max<uint64_t>(required, p.min > state[0] ? p.min - state[0] : 0);
  if (p.max != UINT32_MAX && state[0] + needed > p.max) return false;
  return endless || needed <= most;
}

bool PermutationTable::feasible(uint32_t permutation, uint32_t state) const {
  return feasible(permutations_[permutation], states_[state]);
}

bool PermutationTable::complete(uint32_t permutation, uint32_t state) const {
  const Permutation& p = permutations_[permutation];
  const State& s = states_[state];
  if (s[0] < p.min) return false;
  for (uint32_t i = 0; i < p.items.size(); ++i) {
    const bool used = p.ordered ? i < (s[1] >> 1) || (i == (s[1] >> 1) && (s[1] & 1) != 0) : (s[1 + i / 64] >> i % 64 & 1) != 0;
    if (p.items[i].required && !used) return false;
  }
  return true;
}

std::vector<uint32_t> PermutationTable::next(uint32_t permutation, uint32_t state) {
  const Permutation& p = permutations_[permutation];
  std::vector<uint32_t> items;
  const State current = states_[state];
  for (uint32_t i = p.ordered ? static_cast<uint32_t>(current[1] >> 1) : 0; i < p.items.size(); ++i) {
    if (available(p, current, i) && feasible(p, step(p, current, i))) items.push_back(i);
    // A required item that has not come yet cannot be passed over.
    if (p.ordered && p.items[i].required && !(i == (current[1] >> 1) && (current[1] & 1) != 0)) break;
  }
  return items;
}

uint32_t PermutationTable::after(uint32_t permutation, uint32_t state, uint32_t item) {
  return intern(step(permutations_[permutation], states_[state], item));
}

} // namespace mashbox::grammar
