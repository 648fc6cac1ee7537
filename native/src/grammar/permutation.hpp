#pragma once

#include "grammar/byte_set.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace mashbox::grammar {

/// A list of items of which each comes at most once (`many`: any number of times).
struct Permutation {
  struct Item {
    uint32_t term;
    bool required, many;
  };
  std::vector<Item> items;
  uint32_t separator; ///< a term
  bool ordered;
  uint32_t min, max;  ///< items in all
  bool symbols;       ///< an item or the separator holds calls or tokens
  uint16_t depth;     ///< of the terms' nesting
};

/// The permutations of a grammar and how far outputs have come in them. A state is what was used and how many items there were.
class PermutationTable {
public:
  uint32_t add(Permutation permutation);
  const Permutation& operator[](uint32_t permutation) const { return permutations_[permutation]; }

  bool symbols(uint32_t permutation) const { return permutations_[permutation].symbols; }
  uint16_t depth(uint32_t permutation) const { return permutations_[permutation].depth; }
  uint32_t start(uint32_t permutation);
  bool begun(uint32_t permutation, uint32_t state) const { return count(permutation, state) > 0; }
  bool complete(uint32_t permutation, uint32_t state) const;
  /// The items that may come next: with one of them the permutation can still be completed.
  std::vector<uint32_t> next(uint32_t permutation, uint32_t state) const;
  bool open(uint32_t permutation, uint32_t state) const; ///< there is one
  uint32_t after(uint32_t permutation, uint32_t state, uint32_t item);
  bool feasible(uint32_t permutation, uint32_t state) const;

private:
  /// Word 0 is the count; then, ordered, the first item that may still come, else a bit per used item.
  using State = std::vector<uint64_t>;

  uint32_t intern(State state);
  uint64_t count(uint32_t, uint32_t state) const { return states_[state][0]; }
  /// What is left of a permutation.
  struct Rest {
    uint64_t required; ///< items that must come
    uint64_t open;     ///< items that may come, each counted once
    bool endless;      ///< one of them may come again and again
  };

  /// Sums over the items from an index on.
  struct Tail {
    uint32_t required, many;
  };

  bool used(const Permutation& permutation, const State& state, uint32_t item) const;
  State step(const Permutation& permutation, State state, uint32_t item) const;
  Rest rest(uint32_t permutation, const State& state) const;
  Rest after(uint32_t permutation, const State& state, const Rest& rest, uint32_t item) const;
  bool feasible(const Permutation& permutation, uint64_t count, const Rest& rest) const;
  template <class Visit> void visitNext(uint32_t permutation, uint32_t state, const Visit& visit) const;

  std::vector<Permutation> permutations_;
  std::vector<std::vector<Tail>> tails_;
  std::vector<State> states_;
  std::map<State, uint32_t> ids_;
};

} // namespace mashbox::grammar
