#include "grammar/grammar.hpp"

#include "grammar/engine.hpp"
#include "grammar/ir.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace mashbox::grammar {

Grammar::Grammar(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Grammar::~Grammar() = default;

Result<std::shared_ptr<const Grammar>> Grammar::compile(std::span<const std::byte> bytes, std::shared_ptr<const Vocabulary> vocabulary, const Limits& limits) {
  const auto ir = ir::decode(bytes, vocabulary->size(), limits);
  if (!ir) return ir.error();
  auto engine = std::make_unique<Engine>(std::move(vocabulary), limits);
  engine->budget.start(limits.compileTime);
  auto rules = build(*ir, engine->terms, engine->automaton, engine->budget);
  if (!rules) return std::move(rules).error();
  engine->rules = *std::move(rules);
  return std::shared_ptr<const Grammar>(new Grammar(std::move(engine)));
}

const Vocabulary& Grammar::vocabulary() const { return *engine_->vocabulary; }

void Grammar::warm() const {
  constexpr size_t mostLexemes = 16;
  constexpr std::chrono::milliseconds longest{20};
  const auto end = std::chrono::steady_clock::now() + longest;
  const std::lock_guard lock(engine_->mutex);
  auto& [mutex, vocabulary, limits, budget, terms, automaton, rules, pushdown, masks] = *engine_;
  budget.start(limits.maskTime);
  std::vector<uint64_t> mask(vocabulary->maskWords());
  Frames frames;
  std::vector<Thread> threads;
  pushdown.arrive(rules.bodies[rules.root], Bottom, frames, threads);
  masks.add(threads, frames, mask);
  const auto hasTime = [&] { return !budget.exceeded() && std::chrono::steady_clock::now() < end; };
  for (size_t lexeme = rules.named; lexeme < std::min(rules.bodies.size(), rules.named + mostLexemes) && hasTime(); ++lexeme) {
    budget.start(limits.maskTime);
    const ByteSet beginnings = pushdown.beginnings(rules.bodies[lexeme]);
    for (uint32_t first = 0; beginnings.count() == 1 && first < automaton.classes(); ++first) {
      if (!beginnings.contains(first)) continue;
      const Thread inside[] = {{rules.bodies[lexeme], Unknown}};
      pushdown.step(inside, first, frames, threads);
      masks.warm(threads);
    }
  }
}

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
