#include "grammar/automaton.hpp"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace mashbox::grammar {
namespace {

/// No state of `and` and `not` may take more steps than this to show that it leads somewhere.
constexpr size_t MostSteps = 50'000;

} // namespace

Automaton::Automaton(TermTable& terms, const Limits& limits, Budget& budget) : terms_(terms), limits_(limits), budget_(budget) {}

void Automaton::divideBytes() {
  std::vector<uint32_t> classOf(256, 0);
  uint32_t classes = 1;
  const auto refine = [&](const ByteSet& set) {
    std::array<uint32_t, 256> inside;
    inside.fill(None);
    std::array<bool, 256> hasOutside{};
    for (unsigned byte = 0; byte < 256; ++byte)
      if (!set.contains(byte)) hasOutside[classOf[byte]] = true;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (!set.contains(byte) || !hasOutside[classOf[byte]]) continue;
      uint32_t& split = inside[classOf[byte]];
      if (split == None) split = classes++;
      classOf[byte] = split;
    }
  };
  for (const ByteSet& set : terms_.byteSets()) refine(set);
  ByteSet single;
  const auto add = [&](std::string_view text) {
    for (const char c : text) single.insert(static_cast<uint8_t>(c));
  };
  add(terms_.pool());
  for (const auto& list : terms_.wordLists())
    for (const auto& word : list) add(word);
  for (uint32_t i = 0; i < terms_.freeTexts(); ++i) add(terms_.freeText(i).alphabet());
  for (unsigned byte = 0; byte < 256; ++byte)
    if (single.contains(byte)) refine(ByteSet::range(byte, byte));
  if (terms_.freeTexts() > 0)
    for (const auto& [low, high] : {std::pair{0x00u, 0x7fu}, {0x80u, 0x8fu}, {0x90u, 0x9fu}, {0xa0u, 0xbfu}, {0xc2u, 0xdfu}, {0xe0u, 0xe0u},
                                    {0xe1u, 0xefu}, {0xedu, 0xedu}, {0xf0u, 0xf0u}, {0xf1u, 0xf3u}, {0xf4u, 0xf4u}})
      refine(ByteSet::range(low, high));
  // Numbered in the order of the bytes, so that neighbours behave alike.
  std::vector<uint32_t> order(classes, None);
  members_.assign(classes, {});
  classes_ = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (order[classOf[byte]] == None) order[classOf[byte]] = classes_++;
    classOf_[byte] = static_cast<uint8_t>(order[classOf[byte]]);
    members_[classOf_[byte]].push_back(static_cast<uint8_t>(byte));
  }
}

void Automaton::at(std::vector<uint32_t>& table, Term term) {
  if (term >= table.size()) table.resize(std::max<size_t>(term + 1, 2 * table.size()), None);
}

uint32_t Automaton::store(const Row& row) {
  if (rowEntries_.size() + classes_ > limits_.rowEntries) budget_.exceed("its automaton has too many transitions");
  if (budget_.exceeded() && !rowEntries_.empty()) return 0;
  rowEntries_.insert(rowEntries_.end(), row.begin(), row.end());
  return static_cast<uint32_t>(rowEntries_.size() - classes_);
}

/// Where the state's row stands: derivatives without the terms that match nothing.
uint32_t Automaton::row(Term state) {
  at(rows_, state);
  if (rows_[state] != None) return rows_[state];
  Row found(classes_, Nothing);
  derive(state, found);
  Term last = Nothing, trimmed = Nothing;
  for (Term& next : found) {
    if (next != last) {
      last = next;
      trimmed = trim(next);
    }
    next = trimmed;
  }
  const uint32_t place = store(found);
  at(rows_, state);
  return rows_[state] = place;
}

/// Searches the term's automaton for a state that may end, the most promising states first. Without one, none of them is alive.
bool Automaton::alive(Term start) {
  const auto life = [&](Term term) -> uint8_t& {
    if (term >= life_.size()) life_.resize(std::max<size_t>(term + 1, 2 * life_.size()), 0);
    return life_[term];
  };
  if (life(start) != 0) return life(start) == 1;
  struct Visit {
    Term term;
    uint32_t parent;
  };
  std::vector<Visit> visits{{start, None}};
  ++search_;
  const auto see = [&](Term term) {
    if (term >= seen_.size()) seen_.resize(std::max<size_t>(term + 1, 2 * seen_.size()), 0);
    return std::exchange(seen_[term], search_) != search_;
  };
  see(start);
  using Place = std::tuple<uint32_t, uint32_t>; // shortest, visit
  std::priority_queue<Place, std::vector<Place>, std::greater<>> queue;
  queue.emplace(terms_[start].shortest, 0);
  const auto found = [&](uint32_t visit, uint32_t left) {
    for (uint32_t v = visit; v != None; v = visits[v].parent) {
      const Term term = visits[v].term;
      left = std::min(left, terms_[term].left);
      if (life(term) == 1) continue;
      life(term) = 1;
      if (left == Unbounded) continue;
      if (term >= witnessLeft_.size()) witnessLeft_.resize(std::max<size_t>(term + 1, 2 * witnessLeft_.size()), Unbounded);
      witnessLeft_[term] = left;
    }
    return true;
  };
  Row row(classes_);
  while (!queue.empty()) {
    const uint32_t visit = std::get<1>(queue.top());
    queue.pop();
    const Term term = visits[visit].term;
    if (life(term) == 1) return found(visit, term < witnessLeft_.size() ? witnessLeft_[term] : Unbounded);
    if (terms_[term].nullable) return found(visit, Unbounded);
    if (life(term) == 2) continue;
    derive(term, row);
    // Of an open repeat nothing is claimed then: it is taken for alive after more rounds than count.
    if (visits.size() > MostSteps / 16 && terms_[start].left != Unbounded) return found(0, 0);
    if (visits.size() > MostSteps) budget_.exceed("it takes too long to see whether an `and` or `not` matches anything");
    if (budget_.exceeded()) return false;
    Term last = Nothing;
    for (const Term next : row) {
      if (next == last || next == Nothing) continue;
      last = next;
      if (!see(next)) continue;
      visits.push_back({next, visit});
      queue.emplace(terms_[next].shortest, static_cast<uint32_t>(visits.size() - 1));
    }
  }
  for (const Visit& visit : visits) life(visit.term) = 2;
  return false;
}

Term Automaton::trim(Term term) {
  if (!terms_[term].logic) return term;
  at(trimmed_, term);
  if (trimmed_[term] != None) return trimmed_[term];
  const TermNode node = terms_[term];
  Term result = term;
  switch (node.op) {
    case Op::Both:
    case Op::Complement: result = alive(term) ? term : Nothing; break;
    case Op::Sequence: {
      std::vector<Term> heads;
      Term rest = term;
      const auto known = [&](Term t) { return !terms_[t].logic || (t < trimmed_.size() && trimmed_[t] != None) || terms_[t].op != Op::Sequence; };
      for (; rest == term || !known(rest); rest = terms_[rest].b) heads.push_back(terms_[rest].a);
      result = trim(rest);
      for (size_t i = heads.size(); i-- > 0;) result = terms_.sequence(trim(heads[i]), result);
      break;
    }
    case Op::Choice: {
      std::vector<Term> items(terms_.children(term).begin(), terms_.children(term).end());
      for (Term& item : items) item = trim(item);
      result = terms_.choice(std::move(items));
      break;
    }
    case Op::Repeat: result = terms_.repeatOver(term, trim(node.a)); break;
    case Op::Content: result = terms_.content(trim(node.a)); break;
    default: break;
  }
  at(trimmed_, term);
  at(trimmed_, result);
  trimmed_[result] = result;
  return trimmed_[term] = result;
}

uint32_t Automaton::left(Term state) {
  const TermNode node = terms_[state];
  if (node.left == Unbounded || !node.logic) return node.left;
  at(leftAt_, state);
  if (leftAt_[state] != None) return leftAt_[state];
  uint32_t least = node.left;
  switch (node.op) {
    case Op::Both:
    case Op::Complement: least = !alive(state) ? 0 : std::min(least, state < witnessLeft_.size() ? witnessLeft_[state] : Unbounded); break;
    case Op::Sequence:
      for (Term rest = state; terms_[rest].left != Unbounded; rest = terms_[rest].b) {
        if (terms_[rest].op != Op::Sequence) {
          least = std::min(least, left(rest));
          break;
        }
        least = std::min(least, left(terms_[rest].a));
      }
      break;
    case Op::Choice:
      for (uint32_t i = 0; i < node.b; ++i) least = std::min(least, left(terms_.children(state)[i]));
      break;
    case Op::Repeat:
    case Op::Content: least = std::min(least, left(node.a)); break;
    default: break;
  }
  at(leftAt_, state);
  return leftAt_[state] = least;
}

std::span<const Symbol> Automaton::symbols(Term state) {
  if (!terms_[state].symbols) return {};
  at(symbolsAt_, state);
  if (symbolsAt_[state] == None) {
    std::vector<Symbol> found;
    collect(state, found);
    // Equal symbols lead to the choice of their rests.
    std::stable_sort(found.begin(), found.end(), [](const Symbol& a, const Symbol& b) { return std::tuple(a.kind, a.index) < std::tuple(b.kind, b.index); });
    std::vector<Symbol> merged;
    for (const Symbol& symbol : found) {
      if (!merged.empty() && merged.back().kind == symbol.kind && merged.back().index == symbol.index)
        merged.back().rest = terms_.choice(merged.back().rest, symbol.rest);
      else
        merged.push_back(symbol);
    }
    for (Symbol& symbol : merged) symbol.rest = trim(symbol.rest);
    std::erase_if(merged, [](const Symbol& symbol) { return symbol.rest == Nothing; });
    at(symbolsAt_, state);
    symbolsAt_[state] = static_cast<uint32_t>(symbolLists_.size());
    symbolLists_.push_back(std::move(merged));
  }
  return symbolLists_[symbolsAt_[state]];
}

void Automaton::collect(Term term, std::vector<Symbol>& out) {
  const TermNode node = terms_[term];
  if (!node.symbols || budget_.exceeded()) return;
  budget_.tick();
  const auto after = [&](size_t from, Term rest) {
    for (size_t i = from; i < out.size(); ++i) out[i].rest = terms_.sequence(out[i].rest, rest);
  };
  const size_t from = out.size();
  switch (node.op) {
    case Op::Call: out.push_back({Symbol::Kind::Call, node.a, Epsilon}); return;
    case Op::Tokens: out.push_back({Symbol::Kind::Tokens, node.a, Epsilon}); return;
    case Op::Sequence:
      for (Term rest = term;;) {
        const TermNode place = terms_[rest];
        if (place.op != Op::Sequence) return collect(rest, out);
        const size_t begin = out.size();
        collect(place.a, out);
        after(begin, place.b);
        if (!terms_[place.a].nullable) return;
        rest = place.b;
      }
    case Op::Choice:
      for (uint32_t i = 0; i < node.b; ++i) collect(terms_.children(term)[i], out);
      return;
    case Op::Repeat:
      collect(node.a, out);
      after(from, terms_.repeatRest(term));
      return;
    case Op::Items: {
      PermutationTable& permutations = terms_.permutations();
      if (node.c == 0 && permutations.begun(node.a, node.b))
        return collect(terms_.sequence(permutations[node.a].separator, terms_.items(node.a, node.b, true)), out);
      for (const uint32_t item : permutations.next(node.a, node.b)) {
        const size_t begin = out.size();
        collect(permutations[node.a].items[item].term, out);
        after(begin, terms_.items(node.a, permutations.after(node.a, node.b, item), false));
      }
      return;
    }
    case Op::Free:
      if (const int64_t set = terms_.freeText(node.a).tokens({node.b, static_cast<uint8_t>(node.c)}); set >= 0)
        out.push_back({Symbol::Kind::Tokens, static_cast<uint32_t>(set), Epsilon});
      return;
    default: return;
  }
}

} // namespace mashbox::grammar
