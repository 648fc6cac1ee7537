#pragma once

#include "base/result.hpp"
#include "grammar/limits.hpp"
#include "grammar/vocabulary.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace mashbox::grammar {

/// A compiled grammar: an automaton over bytes that is built as outputs need it, with the masks that were computed so far. Matchers share
/// it; any thread may use them, one at a time.
class Grammar {
public:
  /// From the bytes of the IR (native/GRAMMAR.md). Invalid: what they say makes no sense; Unsupported: left recursion that cannot be
  /// rewritten, `and` or `not` over what is not regular; TooComplex: more than the limits allow. Messages name the rule or node.
  static Result<std::shared_ptr<const Grammar>> compile(std::span<const std::byte> ir, std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits = {});
  ~Grammar();

  const Vocabulary& vocabulary() const;
  /// Computes masks that most outputs will need: where they begin, and inside lexemes.
  void warm() const;
  /// Its memory is so full that new outputs should use a fresh one.
  bool worn() const;
  size_t bytes() const; ///< about what it takes in memory

private:
  friend class Matcher;
  struct Engine;
  explicit Grammar(std::unique_ptr<Engine> engine);
  std::unique_ptr<Engine> engine_;
};

} // namespace mashbox::grammar
