#pragma once

#include "base/result.hpp"
#include "grammar/automaton.hpp"
#include "grammar/ir.hpp"
#include "grammar/terms.hpp"

#include <vector>

namespace mashbox::grammar {

/// The terms of a grammar: a body per rule, among them those of lexemes.
struct Rules {
  std::vector<Term> bodies;
  uint32_t root = 0;    ///< a rule
  size_t named = 0;     ///< the rules of the grammar itself come first
};

/// IR → terms. Small rules that do not lead back to themselves are put in place of their references, direct left recursion becomes
/// a repeat. Invalid or Unsupported errors name the rule or the node; TooComplex where the budget is exceeded.
Result<Rules> build(const ir::Grammar& grammar, TermTable& terms, Automaton& automaton, Budget& budget);

} // namespace mashbox::grammar
