#include "grammar/pushdown.hpp"

#include <algorithm>
#include <string>

namespace mashbox::grammar {
namespace {

uint64_t hashOf(Term state, Frame below) { return mixHash(0, uint64_t{state} << 32 | below); }

} // namespace

void Frames::clear() {
  entries_.assign(2, {Epsilon, Bottom});
  slots_.assign(64, UINT32_MAX);
}

Frame Frames::push(Term state, Frame below) {
  size_t slot = hashOf(state, below) & (slots_.size() - 1);
  for (; slots_[slot] != UINT32_MAX; slot = (slot + 1) & (slots_.size() - 1))
    if (entries_[slots_[slot]].state == state && entries_[slots_[slot]].below == below) return slots_[slot];
  const auto frame = static_cast<Frame>(entries_.size());
  slots_[slot] = frame;
  entries_.push_back({state, below});
  if (2 * entries_.size() > slots_.size()) grow();
  return frame;
}

void Frames::grow() {
  slots_.assign(2 * slots_.size(), UINT32_MAX);
  for (Frame frame = 2; frame < entries_.size(); ++frame) {
    size_t slot = hashOf(entries_[frame].state, entries_[frame].below) & (slots_.size() - 1);
    while (slots_[slot] != UINT32_MAX) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = frame;
  }
}

void Pushdown::arrive(Term state, Frame frame, const Frames& frames, std::vector<Thread>& out) const {
  for (;;) {
    const bool lowest = frame == Bottom || frame == Unknown;
    if (state != Epsilon || lowest) out.push_back({state, frame});
    if (!terms_[state].nullable || (lowest && state == Epsilon)) return;
    if (lowest) {
      out.push_back({Epsilon, frame});
      return;
    }
    state = frames[frame].state;
    frame = frames[frame].below;
  }
}

void Pushdown::tidy(std::vector<Thread>& threads) {
  std::sort(threads.begin(), threads.end());
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  if (threads.size() > limits_.threads) {
    budget_.exceed("an output could be read in more than " + std::to_string(limits_.threads) + " ways at once");
    threads.clear();
  }
}

const ByteSet& Pushdown::beginnings(Term state) {
  if (state >= beginningsAt_.size()) beginningsAt_.resize(std::max<size_t>(state + 1, 2 * beginningsAt_.size()), UINT32_MAX);
  if (beginningsAt_[state] != UINT32_MAX) return beginnings_[beginningsAt_[state]];
  ByteSet found;
  const auto row = automaton_.transitions(state);
  for (uint32_t c = 0; c < row.size(); ++c)
    if (row[c] != Nothing) found.insert(c);
  for (const Symbol& symbol : automaton_.symbols(state))
    if (symbol.kind == Symbol::Kind::Call) found = found | beginnings(bodies_[symbol.index]);
  beginningsAt_[state] = static_cast<uint32_t>(beginnings_.size());
  beginnings_.push_back(found);
  return beginnings_.back();
}

void Pushdown::close(std::vector<Thread>& threads, uint32_t byteClass, Frames& frames) {
  for (size_t i = 0; i < threads.size() && !budget_.exceeded(); ++i) {
    const auto [state, frame] = threads[i];
    const auto symbols = automaton_.symbols(state);
    for (const Symbol& symbol : symbols) {
      if (symbol.kind != Symbol::Kind::Call) continue;
      const Term body = bodies_[symbol.index];
      if (byteClass != AnyClass && !beginnings(body).contains(byteClass)) continue;
      const Thread inside{body, symbol.rest == Epsilon ? frame : frames.push(symbol.rest, frame)};
      if (std::find(threads.begin(), threads.end(), inside) == threads.end()) threads.push_back(inside);
      if (threads.size() > 8 * limits_.threads) budget_.exceed("an output could be read in too many ways at once");
    }
  }
}

void Pushdown::step(std::span<const Thread> threads, uint32_t byteClass, Frames& frames, std::vector<Thread>& out) {
  closed_.assign(threads.begin(), threads.end());
  close(closed_, byteClass, frames);
  out.clear();
  for (const auto& [state, frame] : closed_)
    if (const Term next = automaton_.next(state, byteClass); next != Nothing) arrive(next, frame, frames, out);
  if (out.size() > 1) tidy(out);
}

void Pushdown::stepToken(std::span<const Thread> threads, int32_t token, Frames& frames, std::vector<Thread>& out) {
  closed_.assign(threads.begin(), threads.end());
  close(closed_, AnyClass, frames);
  for (const auto& [state, frame] : closed_) {
    for (const Symbol& symbol : automaton_.symbols(state)) {
      if (symbol.kind != Symbol::Kind::Tokens) continue;
      const auto tokens = terms_.tokens(symbol.index);
      if (std::binary_search(tokens.begin(), tokens.end(), token)) arrive(symbol.rest, frame, frames, out);
    }
  }
  tidy(out);
}

} // namespace mashbox::grammar
