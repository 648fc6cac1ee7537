#include "grammar/permutation.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::grammar {

uint32_t PermutationTable::add(Permutation permutation) {
  std::vector<Tail> tails(permutation.items.size() + 1);
  for (size_t i = permutation.items.size(); i-- > 0;)
    tails[i] = {tails[i + 1].required + permutation.items[i].required, tails[i + 1].many + permutation.items[i].many};
  tails_.push_back(std::move(tails));
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

bool PermutationTable::used(const Permutation& p, const State& state, uint32_t item) const {
  if (!p.ordered) return (state[1 + item / 64] >> item % 64 & 1) != 0;
  const uint64_t first = state[1] >> 1;
  return item < first || (item == first && (state[1] & 1) != 0);
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

PermutationTable::Rest PermutationTable::rest(uint32_t permutation, const State& state) const {
  const Permutation& p = permutations_[permutation];
  if (p.ordered) {
    const auto first = static_cast<uint32_t>(state[1] >> 1);
    const Tail& tail = tails_[permutation][first];
    const bool came = (state[1] & 1) != 0 && p.items[first].required;
    return {tail.required - came, p.items.size() - first, tail.many > 0};
  }
  Rest rest{0, 0, tails_[permutation][0].many > 0};
  for (uint32_t i = 0; i < p.items.size(); ++i) {
    const bool gone = used(p, state, i);
    rest.required += p.items[i].required && !gone;
    rest.open += !gone || p.items[i].many;
  }
  return rest;
}

/// The rest when an item of it has come.
PermutationTable::Rest PermutationTable::after(uint32_t permutation, const State& state, const Rest& rest, uint32_t item) const {
  const Permutation& p = permutations_[permutation];
  if (p.ordered) return this->rest(permutation, step(p, state, item));
  const bool many = p.items[item].many;
  return {rest.required - (p.items[item].required && !used(p, state, item)), rest.open - !many, rest.endless};
}

/// Whether enough items can come after `count`, and not too many must.
bool PermutationTable::feasible(const Permutation& p, uint64_t count, const Rest& rest) const {
  const uint64_t needed = std::max<uint64_t>(rest.required, p.min > count ? p.min - count : 0);
  if (p.max != UINT32_MAX && count + needed > p.max) return false;
  return rest.endless || needed <= rest.open;
}

bool PermutationTable::feasible(uint32_t permutation, uint32_t state) const {
  return feasible(permutations_[permutation], states_[state][0], rest(permutation, states_[state]));
}

bool PermutationTable::complete(uint32_t permutation, uint32_t state) const {
  return states_[state][0] >= permutations_[permutation].min && rest(permutation, states_[state]).required == 0;
}

/// Calls `visit` with each item that may come next until it returns false.
template <class Visit> void PermutationTable::visitNext(uint32_t permutation, uint32_t state, const Visit& visit) const {
  const Permutation& p = permutations_[permutation];
  const State& current = states_[state];
  if (p.max != UINT32_MAX && current[0] >= p.max) return;
  const Rest now = rest(permutation, current);
  for (uint32_t i = p.ordered ? static_cast<uint32_t>(current[1] >> 1) : 0; i < p.items.size(); ++i) {
    const bool gone = used(p, current, i);
    if ((!gone || p.items[i].many) && feasible(p, current[0] + 1, after(permutation, current, now, i)) && !visit(i)) return;
    // A required item that has not come yet cannot be passed over.
    if (p.ordered && p.items[i].required && !gone) return;
  }
}

std::vector<uint32_t> PermutationTable::next(uint32_t permutation, uint32_t state) const {
  std::vector<uint32_t> items;
  visitNext(permutation, state, [&](uint32_t item) {
    items.push_back(item);
    return true;
  });
  return items;
}

bool PermutationTable::open(uint32_t permutation, uint32_t state) const {
  bool any = false;
  visitNext(permutation, state, [&](uint32_t) { return !(any = true); });
  return any;
}

uint32_t PermutationTable::after(uint32_t permutation, uint32_t state, uint32_t item) {
  return intern(step(permutations_[permutation], states_[state], item));
}

} // namespace mashbox::grammar
