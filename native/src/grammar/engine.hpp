#pragma once

#include "grammar/automaton.hpp"
#include "grammar/builder.hpp"
#include "grammar/grammar.hpp"
#include "grammar/masks.hpp"
#include "grammar/pushdown.hpp"

#include <mutex>

namespace mashbox::grammar {

/// What a grammar consists of; `mutex` guards everything that grows.
struct Grammar::Engine {
  Engine(std::shared_ptr<const Vocabulary> tokens, const Limits& limits)
      : vocabulary(std::move(tokens)), limits(limits), terms(this->limits, budget), automaton(terms, this->limits, budget),
        pushdown(terms, automaton, rules.bodies, this->limits, budget), masks(terms, automaton, pushdown, *vocabulary, budget, this->limits) {}

  std::mutex mutex;
  const std::shared_ptr<const Vocabulary> vocabulary;
  const Limits limits;
  Budget budget;
  TermTable terms;
  Automaton automaton;
  Rules rules;
  Pushdown pushdown;
  Masks masks;
};

} // namespace mashbox::grammar
