#include "grammar/automaton.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace mashbox::grammar {
namespace {

/// Changes every term, a run of equal ones once.
template <class Change> void changeEach(std::vector<Term>& terms, const Change& change) {
  std::optional<Term> last;
  Term changed = Nothing;
  for (Term& term : terms) {
    if (term != last) {
      last = term;
      changed = change(term);
    }
    term = changed;
  }
}

} // namespace

void Automaton::derive(Term term, Row& out) {
  at(rawRows_, term);
  if (rawRows_[term] != None) {
    std::copy_n(rowEntries_.begin() + rawRows_[term], classes_, out.begin());
    return;
  }
  std::fill(out.begin(), out.end(), Nothing);
  const TermNode node = terms_[term];
  if (budget_.exceeded()) return;
  switch (node.op) {
    case Op::Nothing:
    case Op::Epsilon:
    case Op::Call:
    case Op::Tokens: return;
    case Op::Bytes:
      for (uint32_t c = 0; c < classes_; ++c)
        if (terms_.byteSet(term).contains(members_[c].front())) out[c] = Epsilon;
      return;
    case Op::Text: out[classOf_[static_cast<uint8_t>(terms_.pool()[node.a])]] = terms_.textRest(term); return;
    case Op::Words: return deriveWords(term, out);
    case Op::Sequence: return deriveSequence(term, out);
    case Op::Choice: deriveChoice(term, out); break;
    case Op::Both: deriveBoth(term, out); break;
    case Op::Complement:
      derive(node.a, out);
      changeEach(out, [&](Term next) { return terms_.complement(next); });
      break;
    case Op::Repeat:
      derive(node.a, out);
      changeEach(out, [&, rest = terms_.repeatRest(term)](Term next) { return terms_.sequence(next, rest); });
      return;
    case Op::Content:
      derive(node.a, out);
      changeEach(out, [&](Term next) { return terms_.content(next); });
      return;
    case Op::Items: deriveItems(term, out); break;
    case Op::Free: return deriveFree(term, out);
  }
  // These are the ones that are costly, and parts of many other terms.
  const uint32_t place = store(out);
  at(rawRows_, term);
  rawRows_[term] = place;
}

void Automaton::deriveSequence(Term term, Row& out) {
  std::vector<std::pair<uint32_t, Term>> pairs;
  Row row(classes_);
  Term place = term;
  bool single = true;
  for (;;) {
    const TermNode node = terms_[place];
    const bool sequence = node.op == Op::Sequence;
    const Term head = sequence ? node.a : place;
    derive(head, row);
    const bool ends = !sequence || !terms_[head].nullable;
    if (single && ends) {
      // The common case: one row, nothing to join.
      Term last = Nothing, joined = Nothing;
      for (uint32_t c = 0; c < classes_; ++c) {
        if (row[c] != last) {
          last = row[c];
          joined = sequence ? terms_.sequence(last, node.b) : last;
        }
        out[c] = joined;
      }
      return;
    }
    single = false;
    Term last = Nothing, joined = Nothing;
    for (uint32_t c = 0; c < classes_; ++c) {
      if (row[c] != last) {
        last = row[c];
        joined = sequence ? terms_.sequence(last, node.b) : last;
      }
      if (joined != Nothing) pairs.emplace_back(c, joined);
    }
    if (ends) break;
    place = node.b;
  }
  joinChoices(pairs, out);
}

void Automaton::joinChoices(std::vector<std::pair<uint32_t, Term>>& pairs, Row& out) {
  std::sort(pairs.begin(), pairs.end());
  std::vector<Term> list, last;
  Term joined = Nothing;
  for (size_t i = 0; i < pairs.size();) {
    const uint32_t c = pairs[i].first;
    list.clear();
    for (; i < pairs.size() && pairs[i].first == c; ++i)
      if (list.empty() || list.back() != pairs[i].second) list.push_back(pairs[i].second);
    if (list != last) {
      joined = list.size() == 1 ? list.front() : terms_.choice(list);
      last = list;
    }
    out[c] = joined;
  }
}

void Automaton::deriveChoice(Term term, Row& out) {
  std::vector<std::pair<uint32_t, Term>> pairs;
  Row row(classes_);
  const uint32_t count = terms_[term].b;
  for (uint32_t i = 0; i < count; ++i) {
    budget_.tick();
    const Term child = terms_.children(term)[i];
    if (const TermNode node = terms_[child]; node.op == Op::Sequence && terms_[node.a].op == Op::Text) {
      // Most choices are between texts and what follows them; a row with one entry is not worth filling.
      const uint32_t c = classOf_[static_cast<uint8_t>(terms_.pool()[terms_[node.a].a])];
      if (const Term next = terms_.sequence(terms_.textRest(node.a), node.b); next != Nothing) pairs.emplace_back(c, next);
      continue;
    }
    derive(child, row);
    for (uint32_t c = 0; c < classes_; ++c)
      if (row[c] != Nothing) pairs.emplace_back(c, row[c]);
  }
  joinChoices(pairs, out);
}

void Automaton::deriveBoth(Term term, Row& out) {
  const uint32_t count = terms_[term].b;
  std::vector<Row> rows(count, Row(classes_));
  for (uint32_t i = 0; i < count; ++i) derive(terms_.children(term)[i], rows[i]);
  std::vector<Term> column(count), last;
  Term joined = Nothing;
  for (uint32_t c = 0; c < classes_; ++c) {
    for (uint32_t i = 0; i < count; ++i) column[i] = rows[i][c];
    if (column != last) {
      joined = terms_.both(column);
      last = column;
    }
    out[c] = joined;
  }
}

void Automaton::deriveWords(Term term, Row& out) {
  const TermNode node = terms_[term];
  const auto words = terms_.words(node.a);
  uint32_t first = node.b;
  if (words[first].size() == node.d) ++first;
  while (first < node.c) {
    const char byte = words[first][node.d];
    const auto end = std::upper_bound(words.begin() + first, words.begin() + node.c, byte, [&](char b, const std::string& word) {
      return static_cast<uint8_t>(b) < static_cast<uint8_t>(word[node.d]);
    });
    const auto next = static_cast<uint32_t>(end - words.begin());
    out[classOf_[static_cast<uint8_t>(byte)]] = terms_.wordsRange(node.a, first, next, node.d + 1);
    first = next;
  }
}

void Automaton::deriveItems(Term term, Row& out) {
  const TermNode node = terms_[term];
  PermutationTable& permutations = terms_.permutations();
  if (node.c == 0 && permutations.begun(node.a, node.b)) {
    derive(terms_.sequence(permutations[node.a].separator, terms_.items(node.a, node.b, true)), out);
    return;
  }
  std::vector<std::pair<uint32_t, Term>> pairs;
  Row row(classes_);
  for (const uint32_t item : permutations.next(node.a, node.b)) {
    budget_.tick();
    derive(permutations[node.a].items[item].term, row);
    const Term rest = terms_.items(node.a, permutations.after(node.a, node.b, item), false);
    for (uint32_t c = 0; c < classes_; ++c)
      if (row[c] != Nothing) pairs.emplace_back(c, terms_.sequence(row[c], rest));
  }
  std::erase_if(pairs, [](const auto& pair) { return pair.second == Nothing; });
  joinChoices(pairs, out);
}

void Automaton::deriveFree(Term term, Row& out) {
  const TermNode node = terms_[term];
  for (uint32_t c = 0; c < classes_; ++c) {
    const auto [outcome, state] = terms_.freeText(node.a).step({node.b, static_cast<uint8_t>(node.c)}, members_[c].front());
    if (outcome == FreeText::Outcome::Ends) out[c] = Epsilon;
    if (outcome == FreeText::Outcome::Goes) out[c] = terms_.free(node.a, state);
  }
}

} // namespace mashbox::grammar
