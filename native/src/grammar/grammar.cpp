#include "grammar/grammar.hpp"

#include "grammar/engine.hpp"
#include "grammar/ir.hpp"

#include <utility>

namespace mashbox::grammar {

Grammar::Grammar(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>> Grammar::compile(std::span<const std::byte> bytes, std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits) {
  const auto ir = ir::decode(bytes, vocabulary->size(), limits);
  if (!ir) return ir.error();
  auto engine = std::make_unique<Engine>(std::move(vocabulary), limits);
  auto rules = build(*ir, engine->terms, engine->automaton, engine->budget);
  if (!rules) return std::move(rules).error();
  engine->rules = *std::move(rules);
  engine->budget.liftDeadline();
  return std::shared_ptr<const Grammar>(new Grammar(std::move(engine)));
}

const Vocabulary& Grammar::vocabulary() const { return *engine_->vocabulary; }

bool Grammar::worn() const {
  const std::lock_guard lock(engine_->mutex);
  return engine_->budget.exceeded() || engine_->terms.size() > engine_->limits.terms / 2 || engine_->automaton.entries() > engine_->limits.rowEntries / 2;
}

size_t Grammar::bytes() const {
  const std::lock_guard lock(engine_->mutex);
  constexpr size_t termBytes = 64; // the term, its hash, and its places in tables
  return engine_->terms.size() * termBytes + engine_->automaton.entries() * sizeof(Term) + engine_->masks.bytes();
}

} // namespace mashbox::grammar
