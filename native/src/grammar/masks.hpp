#pragma once

#include "grammar/configurations.hpp"
#include "grammar/vocabulary.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace mashbox::grammar {

/// Which tokens may come next, per state: walks over the vocabulary's trie, remembered. What a state and the rules that it calls accept
/// does not depend on the stack below; tokens that return from it are looked at again for each rule that they return to.
class Masks {
public:
  Masks(TermTable& terms, Automaton& automaton, Pushdown& pushdown, const Vocabulary& vocabulary, Budget& budget, const Limits& limits);

  /// Adds the tokens that may come after `threads`, whose stacks are in `frames`. `mask` has a bit per token.
  void add(std::span<const Thread> threads, const Frames& frames, std::span<uint64_t> mask);
  /// Computes what `add` needs first for these threads, whatever lies below them.
  void warm(std::span<const Thread> threads);
  size_t bytes() const { return bytes_ + configurations_.bytes(); }

private:
  /// A place in one of an entry's tries after which a token goes on below the stack that a walk knew.
  struct Escape {
    uint32_t trie, node;
    auto operator<=>(const Escape&) const = default;
  };
  /// A slice of which the tokens with at most so many characters are let through.
  struct Cut {
    std::shared_ptr<const Slice> slice;
    uint32_t characters;
  };

  /// The tokens for a state, or for a state and the first states below it: beyond those of its shorter stacks.
  struct Entry {
    std::vector<Term> key;
    bool open = false;             ///< the key has open repeats: the entry serves all states that are alike but for such counts,
    uint32_t rounds = 0;           ///< if these are greater than this, apart from the characters of cuts
    std::vector<Cut> cuts;
    std::vector<int32_t> tokens;   ///< when they are few,
    std::vector<uint64_t> words;   ///< else as a mask
    std::vector<std::shared_ptr<const Trie>> tries; ///< that were walked
    std::vector<Escape> escapes;
    bool wantsContext = false;     ///< so many tokens escape that the walk is done again with the state below
    size_t bytes() const;
  };

  struct KeyHash {
    using is_transparent = void;
    size_t operator()(std::span<const Term> key) const;
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(std::span<const Term> a, std::span<const Term> b) const { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  };

  /// Terms in which greatest counts above a number are open repeats, and those that no token can exhaust endless.
  struct Likeness {
    uint32_t above;
    std::vector<Term> outside, inside; ///< per term: outside of `and`, and inside; UINT32_MAX: not known
  };

  void addThread(Thread thread, const Frames& frames, std::span<uint64_t> mask);
  /// Fills `chain_` with the entries of ever longer stacks, until no token returns from all of it; gives the most rounds of one.
  uint32_t collect(Thread thread, const Frames& frames, uint32_t above);
  /// False where an entry does not serve this thread after all.
  bool addChain(Thread thread, const Frames& frames, std::span<uint64_t> mask);
  bool addCuts(const Entry& entry, Thread thread, const Frames& frames, std::span<uint64_t> mask);
  std::shared_ptr<const Entry> find(const std::vector<Term>& key, const Entry* shorter);
  std::shared_ptr<const Entry> make(const std::vector<Term>& key, const Entry* shorter);
  Configuration startOf(const std::vector<Term>& key);
  void walkAll(Entry& entry);
  /// Puts a slice in place of most of the source's tokens and walks the others; false where no slice fits. `left`: what is left of
  /// counts on the way to `start`.
  bool cut(const Slice::Source& source, Configuration start, uint32_t left, Entry& entry);
  void walk(uint32_t trie, uint32_t begin, uint32_t end, Configuration start, uint32_t left, Entry& entry);
  uint32_t roundsOf(uint32_t left) const { return left >= openRounds_ ? 0 : openRounds_ - left; }
  void store(Entry& entry);
  void evict();
  Term alike(Term term, uint32_t above);
  Term alike(Term term, Likeness& likeness, bool inside);

  TermTable& terms_;
  Pushdown& pushdown_;
  const Vocabulary& vocabulary_;
  Budget& budget_;
  const Limits& limits_;
  Configurations configurations_;
  const uint32_t openRounds_; ///< with which an open repeat begins: more than a token has bytes
  std::vector<Likeness> likenesses_;
  std::vector<std::shared_ptr<const Entry>> chain_;
  std::list<std::shared_ptr<const Entry>> entries_; ///< the one that was used last comes first
  std::unordered_map<std::span<const Term>, std::list<std::shared_ptr<const Entry>>::iterator, KeyHash, KeyEqual> places_; ///< keys lie in the entries
  size_t bytes_ = 0;
  std::vector<Configuration> path_;
  std::vector<uint32_t> lefts_; ///< beside `path_`
  std::vector<int32_t> found_;
};

} // namespace mashbox::grammar
