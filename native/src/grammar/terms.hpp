#pragma once

#include "grammar/byte_set.hpp"
#include "grammar/free_text.hpp"
#include "grammar/limits.hpp"
#include "grammar/permutation.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mashbox::grammar {

/// A hash-consed regular expression over bytes, rule calls and tokens: equal terms have equal indices.
using Term = uint32_t;
inline constexpr Term Nothing = 0;   ///< matches no text
inline constexpr Term Epsilon = 1;   ///< matches the empty text
inline constexpr Term Everything = 2; ///< matches every byte string
inline constexpr uint32_t Unbounded = UINT32_MAX;

enum class Op : uint8_t {
  Nothing,
  Epsilon,
  Bytes,      ///< one byte of set a
  Text,       ///< the b pool bytes at a
  Words,      ///< one of the sorted words b ≤ i < c of list a, without their first d bytes
  Sequence,   ///< a, then b; a is no sequence
  Choice,     ///< b children from child a on
  Both,       ///< the same, all of which match
  Complement, ///< every byte string that a does not match
  Repeat,     ///< a, from b to c times; d = 1: an open one (see `repeatOpen`)
  Call,       ///< a text of rule a
  Tokens,     ///< one whole token of set a
  Items,      ///< the rest of permutation a in state b; c = 1: an item must come now
  Free,       ///< free text a in state b, UTF-8 state c
  Content,    ///< a, which has no symbols, as content: no part of the syntax around it
};

struct TermNode {
  Op op;
  bool nullable;  ///< matches the empty text
  bool logic;     ///< holds a part whose emptiness shows only in its automaton
  bool symbols;   ///< holds calls or tokens
  uint16_t depth; ///< nesting, sequences not counted
  uint32_t shortest; ///< a lower bound of the bytes that it matches
  uint32_t a, b, c, d;
  uint32_t left = Unbounded; ///< the least count of an open repeat in it, Unbounded without one

  bool operator==(const TermNode&) const = default;
};

/// All terms of one grammar. Constructors simplify; what they give matches what their names say. Beyond the budget's limits they
/// give `Nothing`.
class TermTable {
public:
  TermTable(const Limits& limits, Budget& budget);

  const TermNode& operator[](Term term) const { return nodes_[term]; }
  size_t size() const { return nodes_.size(); }
  std::span<const Term> children(Term term) const { return {children_.data() + nodes_[term].a, nodes_[term].b}; }
  const ByteSet& byteSet(Term term) const { return sets_[nodes_[term].a]; }
  std::span<const ByteSet> byteSets() const { return sets_; }
  std::string_view pool() const { return pool_; }
  std::span<const std::string> words(uint32_t list) const { return words_[list]; }
  std::span<const std::vector<std::string>> wordLists() const { return words_; }
  std::span<const int32_t> tokens(uint32_t set) const { return tokens_[set]; }
  PermutationTable& permutations() { return permutations_; }
  const FreeText& freeText(uint32_t index) const { return free_[index]; }
  size_t freeTexts() const { return free_.size(); }

  Term bytes(const ByteSet& set);
  Term text(std::string_view text);
  Term textRest(Term text);                      ///< a text without its first byte
  Term words(std::vector<std::string> words);    ///< one of them
  Term wordsRange(uint32_t list, uint32_t first, uint32_t end, uint32_t skip);
  Term sequence(Term first, Term second);
  Term choice(std::vector<Term> items);
  Term choice(Term a, Term b) { return a == b || b == Nothing ? a : a == Nothing ? b : choice(std::vector{a, b}); }
  Term both(std::vector<Term> items);
  Term complement(Term item);
  Term repeat(Term item, uint32_t min, uint32_t max);
  /// An endless repeat that counts its rounds: `left` falls with each of them, down to 0. It stands for repeats with any greatest count: what
  /// it matches in so many rounds, all of them match that allow as many.
  Term repeatOpen(Term item, uint32_t min, uint32_t left);
  /// A repeat after one more round.
  Term repeatRest(Term repeat);
  Term repeatOver(Term repeat, Term item); ///< the same with another item
  Term content(Term item);
  Term call(uint32_t rule, bool nullable);
  Term token(std::vector<int32_t> ids);
  Term items(uint32_t permutation, uint32_t state, bool now);
  /// The free text's rest; where nothing can follow any more it is `Nothing`.
  Term free(uint32_t text, FreeText::State state);
  uint32_t addFreeText(FreeText text);

private:
  Term intern(TermNode node, std::span<const Term> children = {});
  Term cons(Term head, Term tail);
  Term repeatTimes(Term item, uint32_t min, uint32_t max, bool open);
  Term many(Op op, std::vector<Term>& items);
  void mergeBytes(std::vector<Term>& items);
  void mergeRepeats(std::vector<Term>& items);
  bool factorTails(std::vector<Term>& items);
  void grow();

  const Limits& limits_;
  Budget& budget_;
  std::vector<TermNode> nodes_;
  std::vector<uint32_t> hashes_, slots_;
  std::vector<Term> children_;
  std::vector<ByteSet> sets_;
  std::vector<uint32_t> setSlots_;
  std::string pool_;
  std::vector<std::vector<std::string>> words_;
  std::vector<std::vector<int32_t>> tokens_;
  std::vector<FreeText> free_;
  PermutationTable permutations_;
};

} // namespace mashbox::grammar
