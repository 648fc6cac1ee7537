#include "grammar/free_text.hpp"

#include <deque>

namespace mashbox::grammar {

/// States 1 to 3 expect as many continuation bytes; 4 to 7 expect a restricted one after E0, ED, F0 and F4.
uint8_t stepUtf8(uint8_t state, uint8_t byte) {
  const auto within = [&](uint8_t low, uint8_t high, uint8_t next) -> uint8_t { return byte >= low && byte <= high ? next : BrokenUtf8; };
  switch (state) {
    case 0:
      if (byte < 0x80) return 0;
      if (byte >= 0xc2 && byte <= 0xdf) return 1;
      if (byte == 0xe0) return 4;
      if (byte == 0xed) return 5;
      if (byte >= 0xe1 && byte <= 0xef) return 2;
      if (byte == 0xf0) return 6;
      if (byte >= 0xf1 && byte <= 0xf3) return 3;
      return byte == 0xf4 ? 7 : BrokenUtf8;
    case 1: return within(0x80, 0xbf, 0);
    case 2: return within(0x80, 0xbf, 1);
    case 3: return within(0x80, 0xbf, 2);
    case 4: return within(0xa0, 0xbf, 1);
    case 5: return within(0x80, 0x9f, 1);
    case 6: return within(0x90, 0xbf, 2);
    case 7: return within(0x80, 0x8f, 2);
    default: return BrokenUtf8;
  }
}

FreeText::FreeText(const std::vector<std::string>& until, const std::vector<std::string>& except, int64_t tokens)
    : nodes_(1), endless_(until.empty() && tokens < 0), tokens_(tokens) {
  for (const auto& text : until) nodes_[insert(text)].until = true;
  for (const auto& text : except) nodes_[insert(text)].except = true;
  link();
  if (!except.empty()) findAlive();
}

uint32_t FreeText::insert(const std::string& text) {
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    alphabet_.push_back(c);
    if (nodes_[node].next[byte] == 0) {
      nodes_[node].next[byte] = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    node = nodes_[node].next[byte];
  }
  return node;
}

/// Breadth first: failure links, and with them the missing transitions.
void FreeText::link() {
  std::deque<uint32_t> queue;
  for (const uint32_t child : nodes_[0].next)
    if (child != 0) queue.push_back(child);
  for (; !queue.empty(); queue.pop_front()) {
    Node& node = nodes_[queue.front()];
    const Node& fail = nodes_[node.fail];
    node.until |= fail.until;
    node.except |= fail.except;
    for (unsigned byte = 0; byte < 256; ++byte) {
      uint32_t& child = node.next[byte];
      if (child == 0) {
        child = fail.next[byte];
      } else {
        nodes_[child].fail = fail.next[byte];
        queue.push_back(child);
      }
    }
  }
}

/// Backwards from where the text may end, until nothing is added.
void FreeText::findAlive() {
  std::vector<bool> alive(nodes_.size() * Utf8States, false);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = static_cast<uint32_t>(alive.size()); i-- > 0;) {
      if (alive[i]) continue;
      const State state{i / Utf8States, static_cast<uint8_t>(i % Utf8States)};
      bool found = mayEnd(state) || tokens(state) >= 0;
      for (unsigned byte = 0; byte < 256 && !found; ++byte) {
        const auto [outcome, next] = step(state, static_cast<uint8_t>(byte));
        found = outcome == Outcome::Ends || (outcome == Outcome::Goes && alive[next.node * Utf8States + next.utf8]);
      }
      if (found) alive[i] = changed = true;
    }
  }
  alive_ = std::move(alive);
}

FreeText::Step FreeText::step(State state, uint8_t byte) const {
  const uint8_t utf8 = stepUtf8(state.utf8, byte);
  const uint32_t next = nodes_[state.node].next[byte];
  if (utf8 == BrokenUtf8 || nodes_[next].except) return {Outcome::Fails, {}};
  if (nodes_[next].until) return {Outcome::Ends, {}};
  return {Outcome::Goes, {next, utf8}};
}

} // namespace mashbox::grammar
