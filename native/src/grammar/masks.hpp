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
  /// A place in a trie after which a token goes on below the stack that a walk knew.
  struct Escape {
    uint32_t node;
  };

  /// The tokens for a state, or for a state and the first states below it: beyond those of its shorter stacks.
  struct Entry {
    std::vector<Term> key;
    std::shared_ptr<const Slice> slice;
    uint32_t sliceCharacters = 0;
    std::vector<int32_t> tokens;   ///< when they are few,
    std::vector<uint64_t> words;   ///< else as a mask
    std::shared_ptr<const Trie> trie;
    std::vector<Escape> escapes;   ///< in `trie`
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

  void addThread(Thread thread, const Frames& frames, std::span<uint64_t> mask);
  std::shared_ptr<const Entry> find(const std::vector<Term>& key, const Entry* shorter);
  std::shared_ptr<const Entry> make(const std::vector<Term>& key, const Entry* shorter);
  void walkAll(Entry& entry);
  void walk(const Trie& trie, uint32_t begin, uint32_t end, Configuration start, Entry& entry);
  void store(Entry& entry);
  void evict();
  /// A state that lets through the same tokens, with counts that no token can exhaust taken as endless.
  Term saturated(Term term);

  TermTable& terms_;
  Pushdown& pushdown_;
  const Vocabulary& vocabulary_;
  Budget& budget_;
  const Limits& limits_;
  Configurations configurations_;
  std::vector<Term> saturated_;
  std::list<std::shared_ptr<const Entry>> entries_; ///< the one that was used last comes first
  std::unordered_map<std::span<const Term>, std::list<std::shared_ptr<const Entry>>::iterator, KeyHash, KeyEqual> places_; ///< keys lie in the entries
  size_t bytes_ = 0;
  std::vector<Configuration> path_;
  std::vector<int32_t> found_;
};

} // namespace mashbox::grammar
