#pragma once

#include "base/result.hpp"
#include "grammar/matcher.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::sched {

/// Keeps the output of one request within a grammar.
class Constraint {
public:
  /// `jumpAhead`: what the grammar leaves no choice about is not drawn.
  Constraint(grammar::Matcher matcher, bool jumpAhead) : matcher_(std::move(matcher)), jumpAhead_(jumpAhead) {}

  /// `logits` with −∞ for every token that may not come next; empty where the output is complete and nothing may follow. Stop tokens
  /// may come where the output may end, `tooEarly` ones only if nothing else may. DeadEnd: no token may come, and the output may not
  /// end. TooComplex: the grammar has used up its memory. The result is valid until the next call.
  Result<std::span<const float>> restrict(std::span<const float> logits, std::span<const int32_t> stopTokens, std::span<const int32_t> tooEarly);
  /// `token`, or the first token that `restrict` has let through where that was not one of them (no logit was a finite number).
  int32_t allowed(int32_t token) const;

  /// The next token is one of the grammar's syntax.
  bool syntactic() const { return matcher_.syntactic(); }

  /// True when the output has gone on by the token.
  bool accept(int32_t token) { return matcher_.accept(token); }
  /// The tokens that must come next, already accepted.
  std::vector<int32_t> ahead();

private:
  grammar::Matcher matcher_;
  bool jumpAhead_;
  std::vector<uint64_t> mask_;
  std::vector<float> restricted_;
};

} // namespace mashbox::sched
