#pragma once

#include "grammar/terms.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace mashbox::grammar {

/// What may stand at the front of a term beside a byte, and the term that is left after it.
struct Symbol {
  enum class Kind : uint8_t { Call, Tokens } kind;
  uint32_t index; ///< of the rule or the token set
  Term rest;
};

/// The lazily determinised automaton of a grammar's terms: a state is a term, its transitions are Brzozowski's derivatives. Bytes that no
/// term tells apart are one class.
class Automaton {
public:
  Automaton(TermTable& terms, const Limits& limits, Budget& budget);

  /// Groups the bytes by the terms that there are now. Later terms must come from derivatives.
  void divideBytes();
  uint32_t classes() const { return classes_; }
  size_t entries() const { return rowEntries_.size(); } ///< of the transition tables
  uint8_t classOf(uint8_t byte) const { return classOf_[byte]; }
  std::span<const uint8_t> bytesOf(uint32_t byteClass) const { return members_[byteClass]; }

  /// The state after a byte of the class; `Nothing` where no text goes on from there.
  Term next(Term state, uint32_t byteClass) { return rowEntries_[row(state) + byteClass]; }
  /// All of them, valid until the next call.
  std::span<const Term> transitions(Term state) {
    const uint32_t place = row(state);
    return std::span(rowEntries_).subspan(place, classes_);
  }
  std::span<const Symbol> symbols(Term state);
  /// `term` without alternatives that match no text; for terms that are built, from the inside out.
  Term trim(Term term);
  /// The least count of an open repeat in a state, or in what shows that its `and` and `not` match anything.
  uint32_t left(Term state);

private:
  using Row = std::vector<Term>;
  static constexpr uint32_t None = UINT32_MAX;

  uint32_t row(Term state);
  uint32_t store(const Row& row);
  void derive(Term term, Row& out);
  void deriveSequence(Term term, Row& out);
  void deriveChoice(Term term, Row& out);
  void deriveBoth(Term term, Row& out);
  void deriveItems(Term term, Row& out);
  void deriveWords(Term term, Row& out);
  void deriveFree(Term term, Row& out);
  /// Joins what several terms give for each class, found as (class, term) pairs.
  void joinChoices(std::vector<std::pair<uint32_t, Term>>& pairs, Row& out);
  bool alive(Term term);
  void collect(Term term, std::vector<Symbol>& out);
  static void at(std::vector<uint32_t>& table, Term term);

  TermTable& terms_;
  const Limits& limits_;
  Budget& budget_;
  uint32_t classes_ = 0;
  std::array<uint8_t, 256> classOf_{};
  std::vector<std::vector<uint8_t>> members_;

  std::vector<Term> rowEntries_;
  std::vector<uint32_t> rows_, rawRows_; ///< per term: where its row begins; raw rows may lead to terms that match nothing
  std::vector<uint32_t> trimmed_;        ///< per term, None: not known
  std::vector<uint8_t> life_;            ///< per term: 0 unknown, 1 alive, 2 dead
  std::vector<uint32_t> witnessLeft_;    ///< per term that is alive and has open repeats: the least of their counts on the way to an end
  std::vector<uint32_t> leftAt_;         ///< per term, None: not known
  std::vector<uint32_t> seen_;           ///< per term: the last search that came across it
  uint32_t search_ = 0;
  std::vector<uint32_t> symbolsAt_;
  std::vector<std::vector<Symbol>> symbolLists_;
};

} // namespace mashbox::grammar
