#include "grammar/terms.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::grammar {
namespace {

uint32_t addSaturated(uint32_t a, uint32_t b) { return a > UINT32_MAX - b ? UINT32_MAX : a + b; }
uint32_t multiplySaturated(uint32_t a, uint32_t b) {
  const uint64_t product = uint64_t{a} * b;
  return product > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(product);
}

} // namespace

TermTable::TermTable(const Limits& limits, Budget& budget) : limits_(limits), budget_(budget), slots_(1024, UINT32_MAX) {
  intern({.op = Op::Nothing, .nullable = false, .logic = false, .symbols = false, .depth = 0, .shortest = UINT32_MAX, .a = 0, .b = 0, .c = 0, .d = 0});
  intern({.op = Op::Epsilon, .nullable = true, .logic = false, .symbols = false, .depth = 0, .shortest = 0, .a = 0, .b = 0, .c = 0, .d = 0});
  intern({.op = Op::Complement, .nullable = true, .logic = false, .symbols = false, .depth = 0, .shortest = 0, .a = Nothing, .b = 0, .c = 0, .d = 0});
}

void TermTable::grow() {
  slots_.assign(slots_.size() * 2, UINT32_MAX);
  for (uint32_t i = 0; i < hashes_.size(); ++i) {
    size_t slot = hashes_[i] & (slots_.size() - 1);
    while (slots_[slot] != UINT32_MAX) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = i;
  }
}

/// A node with children names their place only once it is known; until then its `a` is 0.
Term TermTable::intern(TermNode node, std::span<const Term> children) {
  if (budget_.exceeded()) return Nothing;
  uint64_t hash = mixHash(static_cast<uint64_t>(node.op), uint64_t{node.a} << 32 | node.b);
  hash = mixHash(hash, uint64_t{node.c} << 32 | node.d);
  for (const Term child : children) hash = mixHash(hash, child);
  const auto folded = static_cast<uint32_t>(hash >> 32 ^ hash);
  size_t slot = folded & (slots_.size() - 1);
  for (; slots_[slot] != UINT32_MAX; slot = (slot + 1) & (slots_.size() - 1)) {
    const uint32_t known = slots_[slot];
    const TermNode& other = nodes_[known];
    if (hashes_[known] != folded || other.op != node.op || other.b != node.b || other.c != node.c || other.d != node.d) continue;
    if (children.empty() ? other.a == node.a : std::equal(children.begin(), children.end(), children_.begin() + other.a)) return known;
  }
  budget_.tick();
  if (nodes_.size() >= limits_.terms) budget_.exceed("its automaton has more than " + std::to_string(limits_.terms) + " parts");
  if (node.depth > limits_.depth) budget_.exceed("it is nested more than " + std::to_string(limits_.depth) + " deep");
  if (budget_.exceeded()) return Nothing;
  if (!children.empty()) {
    node.a = static_cast<uint32_t>(children_.size());
    children_.insert(children_.end(), children.begin(), children.end());
  }
  const auto term = static_cast<Term>(nodes_.size());
  slots_[slot] = term;
  nodes_.push_back(node);
  hashes_.push_back(folded);
  if (2 * nodes_.size() > slots_.size()) grow();
  return term;
}

Term TermTable::bytes(const ByteSet& set) {
  if (set.empty()) return Nothing;
  if (setSlots_.empty()) setSlots_.assign(1 << 12, UINT32_MAX);
  uint64_t hash = 0;
  for (const uint64_t word : set.words) hash = mixHash(hash, word);
  size_t slot = hash >> 40 & (setSlots_.size() - 1);
  while (setSlots_[slot] != UINT32_MAX && !(sets_[setSlots_[slot]] == set)) slot = (slot + 1) & (setSlots_.size() - 1);
  if (setSlots_[slot] == UINT32_MAX) {
    if (2 * sets_.size() >= setSlots_.size()) {
      budget_.exceed("it has more than " + std::to_string(sets_.size()) + " different sets of bytes");
      return Nothing;
    }
    setSlots_[slot] = static_cast<uint32_t>(sets_.size());
    sets_.push_back(set);
  }
  return intern({.op = Op::Bytes, .nullable = false, .logic = false, .symbols = false, .depth = 0, .shortest = 1, .a = setSlots_[slot], .b = 0, .c = 0, .d = 0});
}

Term TermTable::text(std::string_view text) {
  if (text.empty()) return Epsilon;
  // What stands in the first kilobytes of the pool already is not stored again: equal texts become equal terms.
  size_t offset = pool_.size() < (1 << 14) ? pool_.find(text) : std::string::npos;
  if (offset == std::string::npos) {
    offset = pool_.size();
    pool_ += text;
  }
  return intern({.op = Op::Text, .nullable = false, .logic = false, .symbols = false, .depth = 0, .shortest = static_cast<uint32_t>(text.size()),
                 .a = static_cast<uint32_t>(offset), .b = static_cast<uint32_t>(text.size()), .c = 0, .d = 0});
}

Term TermTable::textRest(Term text) {
  TermNode rest = nodes_[text];
  if (rest.b == 1) return Epsilon;
  ++rest.a;
  --rest.b;
  --rest.shortest;
  return intern(rest);
}

Term TermTable::words(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  const auto end = static_cast<uint32_t>(words.size());
  if (end == 0) return Nothing;
  if (end == 1) return text(words.front());
  words_.push_back(std::move(words));
  return wordsRange(static_cast<uint32_t>(words_.size() - 1), 0, end, 0);
}

Term TermTable::wordsRange(uint32_t list, uint32_t first, uint32_t end, uint32_t skip) {
  if (first == end) return Nothing;
  const auto& words = words_[list];
  if (end - first == 1) return text(std::string_view(words[first]).substr(skip));
  const bool nullable = words[first].size() == skip;
  return intern({.op = Op::Words, .nullable = nullable, .logic = false, .symbols = false, .depth = 0, .shortest = nullable ? 0u : 1u, .a = list, .b = first, .c = end, .d = skip});
}

Term TermTable::cons(Term head, Term tail) {
  if (head == Nothing || tail == Nothing) return Nothing;
  if (head == Epsilon) return tail;
  if (tail == Epsilon) return head;
  // x{m,n} x{p,q} is x{m+p,n+q}.
  if (nodes_[head].op == Op::Repeat) {
    const bool sequence = nodes_[tail].op == Op::Sequence;
    const Term next = sequence ? nodes_[tail].a : tail;
    const TermNode h = nodes_[head], n = nodes_[next];
    if (n.op == Op::Repeat && n.a == h.a) {
      // The rounds of open ones are counted once, so that none of them is forgotten.
      const bool endless = h.c == Unbounded || n.c == Unbounded, open = (h.d | n.d) != 0 && !endless;
      const uint32_t max = !open ? addSaturated(h.c, n.c) : h.d == 0 ? n.c : n.d == 0 ? h.c : std::min(h.c, n.c);
      const Term merged = repeatTimes(h.a, addSaturated(h.b, n.b), max, open);
      return sequence ? cons(merged, nodes_[tail].b) : merged;
    }
  }
  const TermNode h = nodes_[head], t = nodes_[tail];
  return intern({.op = Op::Sequence,
                 .nullable = h.nullable && t.nullable,
                 .logic = h.logic || t.logic,
                 .symbols = h.symbols || t.symbols,
                 .depth = std::max<uint16_t>(h.depth + 1, t.depth),
                 .shortest = addSaturated(h.shortest, t.shortest),
                 .a = head,
                 .b = tail,
                 .c = 0,
                 .d = 0,
                 .left = std::min(h.left, t.left)});
}

Term TermTable::sequence(Term first, Term second) {
  if (first == Nothing || second == Nothing) return Nothing;
  if (nodes_[first].op != Op::Sequence) return cons(first, second);
  std::vector<Term> heads;
  Term last = first;
  for (; nodes_[last].op == Op::Sequence; last = nodes_[last].b) heads.push_back(nodes_[last].a);
  Term result = cons(last, second);
  for (size_t i = heads.size(); i-- > 0;) result = cons(heads[i], result);
  return result;
}

/// The choice or conjunction of `items`, which are sorted and distinct.
Term TermTable::many(Op op, std::vector<Term>& items) {
  TermNode node{.op = op, .nullable = op == Op::Both, .logic = op == Op::Both, .symbols = false, .depth = 0, .shortest = op == Op::Both ? 0 : UINT32_MAX,
                .a = 0, .b = static_cast<uint32_t>(items.size()), .c = 0, .d = 0};
  for (const Term item : items) {
    const TermNode& child = nodes_[item];
    if (op == Op::Both) {
      node.nullable &= child.nullable;
      node.shortest = std::max(node.shortest, child.shortest);
    } else {
      node.nullable |= child.nullable;
      node.shortest = std::min(node.shortest, child.shortest);
    }
    node.logic |= child.logic;
    node.symbols |= child.symbols;
    node.left = std::min(node.left, child.left);
    node.depth = std::max<uint16_t>(node.depth, child.depth + 1);
  }
  return intern(node, items);
}

void TermTable::mergeBytes(std::vector<Term>& items) {
  const auto isBytes = [&](Term term) { return nodes_[term].op == Op::Bytes; };
  if (std::count_if(items.begin(), items.end(), isBytes) < 2) return;
  ByteSet all;
  for (const Term item : items)
    if (isBytes(item)) all = all | sets_[nodes_[item].a];
  std::erase_if(items, isBytes);
  items.push_back(bytes(all));
}

/// x{m,n} | x{p,q} is x{m,q} where the ranges touch; the empty text is x{0,0}.
void TermTable::mergeRepeats(std::vector<Term>& items) {
  const auto isRepeat = [&](Term term) { return nodes_[term].op == Op::Repeat; };
  const auto repeats = std::stable_partition(items.begin(), items.end(), [&](Term term) { return !isRepeat(term); });
  if (repeats == items.end()) return;
  std::vector<Term> sorted(repeats, items.end());
  items.erase(repeats, items.end());
  std::sort(sorted.begin(), sorted.end(), [&](Term x, Term y) {
    const TermNode &a = nodes_[x], &b = nodes_[y];
    return a.a != b.a ? a.a < b.a : a.b < b.b;
  });
  const bool empty = std::find(items.begin(), items.end(), Epsilon) != items.end();
  for (size_t i = 0; i < sorted.size();) {
    const Term item = nodes_[sorted[i]].a;
    uint32_t min = nodes_[sorted[i]].b, max = nodes_[sorted[i]].c;
    bool open = nodes_[sorted[i]].d != 0;
    if (empty && min == 1) min = 0;
    // Of an open one only the least that it stands for is certain.
    const auto touches = [&](const TermNode& next) { return max == Unbounded || next.b <= (open ? std::max(min, 1u) : max) + 1; };
    for (++i; i < sorted.size() && nodes_[sorted[i]].a == item && touches(nodes_[sorted[i]]); ++i) {
      const TermNode& next = nodes_[sorted[i]];
      max = next.d == 0 && open && next.c != Unbounded ? max : next.d != 0 && !open && max != Unbounded ? next.c : std::max(max, next.c);
      open = (open || next.d != 0) && max != Unbounded;
    }
    items.push_back(repeatTimes(item, min, max, open));
  }
}

/// x t | y t is (x | y) t.
bool TermTable::factorTails(std::vector<Term>& items) {
  std::vector<std::pair<Term, Term>> byTail;
  for (const Term item : items)
    if (nodes_[item].op == Op::Sequence) byTail.emplace_back(nodes_[item].b, nodes_[item].a);
  if (byTail.size() < 2) return false;
  std::sort(byTail.begin(), byTail.end());
  const auto sameTail = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(byTail.begin(), byTail.end(), sameTail) == byTail.end()) return false;
  std::erase_if(items, [&](Term term) { return nodes_[term].op == Op::Sequence; });
  for (size_t i = 0; i < byTail.size();) {
    std::vector<Term> heads;
    const Term tail = byTail[i].first;
    for (; i < byTail.size() && byTail[i].first == tail; ++i) heads.push_back(byTail[i].second);
    items.push_back(sequence(choice(std::move(heads)), tail));
  }
  return true;
}

Term TermTable::choice(std::vector<Term> items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (nodes_[items[i]].op != Op::Choice) continue;
    const auto nested = children(items[i]);
    const std::vector<Term> copy(nested.begin(), nested.end());
    items[i] = Nothing;
    items.insert(items.end(), copy.begin(), copy.end());
  }
  const auto tidy = [&] {
    std::erase(items, Nothing);
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  };
  tidy();
  if (items.size() > 1) {
    if (std::binary_search(items.begin(), items.end(), Everything)) return Everything;
    mergeBytes(items);
    if (factorTails(items)) return choice(std::move(items));
    mergeRepeats(items);
    tidy();
    if (items.size() > 1 && items.front() == Epsilon && std::any_of(items.begin() + 1, items.end(), [&](Term item) { return nodes_[item].nullable; }))
      items.erase(items.begin());
  }
  if (items.empty()) return Nothing;
  if (items.size() == 1) return items.front();
  return many(Op::Choice, items);
}

Term TermTable::both(std::vector<Term> items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (nodes_[items[i]].op != Op::Both) continue;
    const auto nested = children(items[i]);
    const std::vector<Term> copy(nested.begin(), nested.end());
    items[i] = Everything;
    items.insert(items.end(), copy.begin(), copy.end());
  }
  std::erase(items, Everything);
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  if (items.empty()) return Everything;
  if (items.front() == Nothing) return Nothing;
  if (items.size() == 1) return items.front();
  if (items.front() == Epsilon) return std::all_of(items.begin(), items.end(), [&](Term item) { return nodes_[item].nullable; }) ? Epsilon : Nothing;
  for (const Term item : items)
    if (nodes_[item].op == Op::Complement && std::binary_search(items.begin(), items.end(), nodes_[item].a)) return Nothing;
  return many(Op::Both, items);
}

Term TermTable::complement(Term item) {
  if (item == Nothing) return Everything;
  const TermNode node = nodes_[item];
  if (node.op == Op::Complement) return node.a;
  return intern({.op = Op::Complement, .nullable = !node.nullable, .logic = true, .symbols = node.symbols, .depth = static_cast<uint16_t>(node.depth + 1),
                 .shortest = node.nullable ? 1u : 0u, .a = item, .b = 0, .c = 0, .d = 0, .left = node.left});
}

Term TermTable::repeat(Term item, uint32_t min, uint32_t max) { return repeatTimes(item, min, max, false); }
Term TermTable::repeatOpen(Term item, uint32_t min, uint32_t left) { return repeatTimes(item, min, left, true); }

Term TermTable::repeatRest(Term repeat) {
  const TermNode node = nodes_[repeat];
  const bool counts = node.c != Unbounded && node.c != 0;
  return repeatTimes(node.a, node.b == 0 ? 0 : node.b - 1, counts ? node.c - 1 : node.c, node.d != 0);
}

Term TermTable::repeatOver(Term repeat, Term item) {
  const TermNode node = nodes_[repeat];
  return repeatTimes(item, node.b, node.c, node.d != 0);
}

Term TermTable::repeatTimes(Term item, uint32_t min, uint32_t max, bool open) {
  if (item == Nothing) return min == 0 ? Epsilon : Nothing;
  if (item == Epsilon || (max == 0 && !open)) return Epsilon;
  TermNode node = nodes_[item];
  if (node.nullable) min = 0;
  if (min == 1 && max == 1 && !open) return item;
  if (node.op == Op::Repeat && node.d == 0 && node.b == 0 && (node.c == Unbounded || node.c == 1)) {
    // (x*){m,n} is x*, and (x?){m,n} is x{0,n}.
    if (node.c == Unbounded) return item;
    item = node.a;
    node = nodes_[item];
    min = 0;
    if (max == 1 && !open) return repeat(item, 0, 1);
  }
  return intern({.op = Op::Repeat, .nullable = min == 0, .logic = node.logic, .symbols = node.symbols, .depth = static_cast<uint16_t>(node.depth + 1),
                 .shortest = multiplySaturated(node.shortest, min), .a = item, .b = min, .c = max, .d = open ? 1u : 0u,
                 .left = std::min(node.left, open ? max : Unbounded)});
}

Term TermTable::content(Term item) {
  const TermNode node = nodes_[item];
  if (item == Nothing || item == Epsilon || node.op == Op::Content) return item;
  return intern({.op = Op::Content, .nullable = node.nullable, .logic = node.logic, .symbols = node.symbols, .depth = static_cast<uint16_t>(node.depth + 1),
                 .shortest = node.shortest, .a = item, .b = 0, .c = 0, .d = 0, .left = node.left});
}

Term TermTable::call(uint32_t rule, bool nullable) {
  return intern({.op = Op::Call, .nullable = nullable, .logic = false, .symbols = true, .depth = 0, .shortest = 0, .a = rule, .b = 0, .c = 0, .d = 0});
}

Term TermTable::token(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  auto place = std::find(tokens_.begin(), tokens_.end(), ids);
  if (place == tokens_.end()) place = tokens_.insert(place, std::move(ids));
  return intern({.op = Op::Tokens, .nullable = false, .logic = false, .symbols = true, .depth = 0, .shortest = 0, .a = static_cast<uint32_t>(place - tokens_.begin()), .b = 0, .c = 0, .d = 0});
}

Term TermTable::items(uint32_t permutation, uint32_t state, bool now) {
  if (!permutations_.feasible(permutation, state)) return Nothing;
  const bool complete = !now && permutations_.complete(permutation, state);
  const bool open = permutations_.open(permutation, state);
  if (!open) return complete ? Epsilon : Nothing;
  return intern({.op = Op::Items, .nullable = complete, .logic = false, .symbols = permutations_.symbols(permutation), .depth = permutations_.depth(permutation),
                 .shortest = complete ? 0u : 1u, .a = permutation, .b = state, .c = now ? 1u : 0u, .d = 0});
}

Term TermTable::free(uint32_t text, FreeText::State state) {
  const FreeText& free = free_[text];
  if (!free.alive(state)) return Nothing;
  const bool nullable = free.mayEnd(state);
  return intern({.op = Op::Free, .nullable = nullable, .logic = false, .symbols = free.tokens({0, 0}) >= 0, .depth = 0, .shortest = nullable ? 0u : free.tokens(state) >= 0 ? 0u : 1u,
                 .a = text, .b = state.node, .c = state.utf8, .d = 0});
}

uint32_t TermTable::addFreeText(FreeText text) {
  free_.push_back(std::move(text));
  return static_cast<uint32_t>(free_.size() - 1);
}

} // namespace mashbox::grammar
