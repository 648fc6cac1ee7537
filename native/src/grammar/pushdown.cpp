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

bool Pushdown::leadsToContent(Term state) {
  if (state >= contentAt_.size()) contentAt_.resize(std::max<size_t>(state + 1, 2 * contentAt_.size()), 0);
  if (contentAt_[state] != 0) return contentAt_[state] == 1;
  bool found = beginsWithContent(state);
  for (const Symbol& symbol : automaton_.symbols(state))
    found = found || (symbol.kind == Symbol::Kind::Call && leadsToContent(bodies_[symbol.index]));
  contentAt_[state] = found ? 1 : 2;
  return found;
}

/// Calls are not followed.
bool Pushdown::beginsWithContent(Term term) {
  for (;;) {
    const TermNode node = terms_[term];
    switch (node.op) {
      case Op::Content:
      case Op::Free: return true;
      case Op::Sequence:
        if (beginsWithContent(node.a)) return true;
        if (!terms_[node.a].nullable) return false;
        term = node.b;
        break;
      case Op::Choice: {
        const auto items = terms_.children(term);
        return std::any_of(items.begin(), items.end(), [&](Term item) { return beginsWithContent(item); });
      }
      case Op::Repeat: term = node.a; break;
      case Op::Items: {
        PermutationTable& permutations = terms_.permutations();
        const Permutation& permutation = permutations[node.a];
        if (node.c == 0 && permutations.begun(node.a, node.b)) {
          if (beginsWithContent(permutation.separator)) return true;
          if (!terms_[permutation.separator].nullable) return false;
        }
        const auto next = permutations.next(node.a, node.b);
        return std::any_of(next.begin(), next.end(), [&](uint32_t item) { return beginsWithContent(permutation.items[item].term); });
      }
      default: return false;
    }
  }
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
