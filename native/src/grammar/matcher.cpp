#include "grammar/matcher.hpp"

#include "grammar/engine.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace mashbox::grammar {

Matcher::Matcher(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)), frames_(std::make_shared<Frames>()) {
  auto& engine = *grammar_->engine_;
  const std::lock_guard lock(engine.mutex);
  engine.budget.start(engine.limits.maskTime);
  engine.pushdown.arrive(engine.rules.bodies[engine.rules.root], Bottom, *frames_, threads_);
  engine.pushdown.tidy(threads_);
  ends_.push_back(static_cast<uint32_t>(threads_.size()));
}

bool Matcher::accept(int32_t token) {
  auto& engine = *grammar_->engine_;
  if (token < 0 || static_cast<uint32_t>(token) >= engine.vocabulary->size()) return false;
  const std::lock_guard lock(engine.mutex);
  engine.budget.start(engine.limits.maskTime);
  const std::string_view bytes = engine.vocabulary->bytes(token);
  std::vector<Thread> now, next;
  if (!bytes.empty()) {
    now.assign(threads().begin(), threads().end());
    for (const char byte : bytes) {
      engine.pushdown.step(now, engine.automaton.classOf(static_cast<uint8_t>(byte)), *frames_, next);
      std::swap(now, next);
      if (now.empty()) break;
    }
  }
  engine.pushdown.stepToken(threads(), token, *frames_, now);
  if (now.empty() || engine.budget.exceeded()) return false;
  threads_.insert(threads_.end(), now.begin(), now.end());
  ends_.push_back(static_cast<uint32_t>(threads_.size()));
  return true;
}

void Matcher::rollback(size_t tokens) {
  ends_.resize(ends_.size() - std::min(tokens, length()));
  threads_.resize(ends_.back());
}

bool Matcher::accepting() const {
  const auto now = threads();
  return std::find(now.begin(), now.end(), Thread{Epsilon, Bottom}) != now.end();
}

bool Matcher::syntactic() const {
  if (accepting()) return false;
  auto& engine = *grammar_->engine_;
  const std::lock_guard lock(engine.mutex);
  engine.budget.start(engine.limits.maskTime);
  const auto now = threads();
  return std::none_of(now.begin(), now.end(), [&](const Thread& thread) { return engine.pushdown.leadsToContent(thread.state); });
}

Result<void> Matcher::mask(std::span<uint64_t> mask) {
  auto& engine = *grammar_->engine_;
  const std::lock_guard lock(engine.mutex);
  engine.budget.start(engine.limits.maskTime);
  std::fill(mask.begin(), mask.end(), 0);
  if (!engine.budget.exceeded()) engine.masks.add(threads(), *frames_, mask);
  if (!engine.budget.exceeded()) return {};
  std::fill(mask.begin(), mask.end(), 0);
  return Error{ErrorKind::TooComplex, "grammar: " + engine.budget.what(), "grammar"};
}

Matcher::Forced Matcher::forced(size_t most) const {
  auto& engine = *grammar_->engine_;
  const std::lock_guard lock(engine.mutex);
  engine.budget.start(engine.limits.maskTime);
  Forced result;
  std::vector<Thread> now(threads().begin(), threads().end()), next;
  while (!engine.budget.exceeded()) {
    ByteSet classes;
    bool tokens = false;
    for (const Thread& thread : now) {
      classes = classes | engine.pushdown.beginnings(thread.state);
      if (engine.terms[thread.state].symbols) engine.pushdown.tokens(thread.state, [&](int32_t) { tokens = true; });
    }
    const bool accepting = std::find(now.begin(), now.end(), Thread{Epsilon, Bottom}) != now.end();
    result.complete = classes.empty() && !tokens && accepting;
    if (classes.count() != 1 || tokens || accepting || result.bytes.size() >= most) break;
    uint32_t only = 0;
    while (!classes.contains(only)) ++only;
    const auto bytes = engine.automaton.bytesOf(only);
    if (bytes.size() != 1) break;
    result.bytes.push_back(static_cast<char>(bytes.front()));
    engine.pushdown.step(now, only, *frames_, next);
    std::swap(now, next);
  }
  return result;
}

std::vector<int32_t> Matcher::forcedTokens() const {
  constexpr size_t longestRun = 512;
  const auto [bytes, complete] = forced(longestRun);
  if (bytes.empty()) return {};
  std::vector<int32_t> tokens = vocabulary().cut(bytes);
  // How far each token reaches, and whether one that begins there could reach beyond all of the bytes.
  const Trie& trie = vocabulary().trie();
  const auto reachesBeyond = [&](std::string_view rest) {
    size_t depth = 0;
    for (uint32_t i = 0, end = static_cast<uint32_t>(trie.size()); i < end;) {
      if (trie[i].byte != static_cast<uint8_t>(rest[depth])) {
        i = trie[i].end;
        continue;
      }
      end = trie[i++].end;
      if (++depth == rest.size()) return end > i;
    }
    return false;
  };
  size_t from = 0, kept = 0;
  for (const int32_t token : tokens) {
    const std::string_view text = vocabulary().bytes(token);
    const std::string_view rest = std::string_view(bytes).substr(from);
    if (text.empty() || !rest.starts_with(text) || (!complete && reachesBeyond(rest))) break;
    from += text.size();
    ++kept;
  }
  tokens.resize(kept);
  return tokens;
}

} // namespace mashbox::grammar
