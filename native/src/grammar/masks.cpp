#include "grammar/masks.hpp"

#include <algorithm>

namespace mashbox::grammar {
namespace {

/// In a key: what lies below the last state is nothing.
constexpr Term End = UINT32_MAX;
constexpr size_t ManyEscapes = 4096;

void set(std::span<uint64_t> mask, int32_t token) { mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << token % 64; }

} // namespace

size_t Masks::Entry::bytes() const {
  return sizeof *this + key.size() * sizeof(Term) + tokens.size() * sizeof(int32_t) + words.size() * sizeof(uint64_t) + escapes.size() * sizeof(Escape);
}

size_t Masks::KeyHash::operator()(std::span<const Term> key) const {
  uint64_t hash = key.size();
  for (const Term term : key) hash = mixHash(hash, term);
  return hash;
}

Masks::Masks(TermTable& terms, Automaton& automaton, Pushdown& pushdown, const Vocabulary& vocabulary, Budget& budget, const Limits& limits)
    : terms_(terms), pushdown_(pushdown), vocabulary_(vocabulary), budget_(budget), limits_(limits), configurations_(terms, automaton, pushdown, budget, limits) {}

void Masks::add(std::span<const Thread> threads, const Frames& frames, std::span<uint64_t> mask) {
  configurations_.tidy();
  for (const Thread& thread : threads) {
    if (thread.state == Epsilon) continue;
    addThread(thread, frames, mask);
    if (terms_[thread.state].symbols) pushdown_.tokens(thread.state, [&](int32_t token) { set(mask, token); });
  }
}

void Masks::warm(std::span<const Thread> threads) {
  configurations_.tidy();
  for (const Thread& thread : threads)
    if (thread.state != Epsilon && !budget_.exceeded()) find({saturated(thread.state)}, nullptr);
}

/// Masks of ever longer stacks, until no token returns from all of it.
void Masks::addThread(Thread thread, const Frames& frames, std::span<uint64_t> mask) {
  std::vector<Term> key{saturated(thread.state)};
  std::shared_ptr<const Entry> entry;
  for (Frame frame = thread.frame; !budget_.exceeded(); frame = frames[frame].below) {
    entry = find(key, entry.get());
    if (!entry->wantsContext) {
      if (entry->slice) entry->slice->addTo(mask, entry->sliceCharacters);
      for (const int32_t token : entry->tokens) set(mask, token);
      for (size_t i = 0; i < entry->words.size(); ++i) mask[i] |= entry->words[i];
      if (entry->escapes.empty()) return;
    }
    if (key.back() == End || (frame == Bottom && !entry->wantsContext)) return;
    key.push_back(frame == Bottom ? End : saturated(frames[frame].state));
  }
}

std::shared_ptr<const Masks::Entry> Masks::find(const std::vector<Term>& key, const Entry* shorter) {
  if (const auto known = places_.find(std::span(key)); known != places_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    return *known->second;
  }
  auto entry = make(key, shorter);
  bytes_ += entry->bytes();
  entries_.push_front(entry);
  places_.emplace(std::span(entry->key), entries_.begin());
  evict();
  return entry;
}

void Masks::evict() {
  while (bytes_ > limits_.maskBytes && entries_.size() > 1) {
    bytes_ -= entries_.back()->bytes();
    places_.erase(std::span(entries_.back()->key));
    entries_.pop_back();
  }
}

std::shared_ptr<const Masks::Entry> Masks::make(const std::vector<Term>& key, const Entry* shorter) {
  const auto entry = std::make_shared<Entry>();
  entry->key = key;
  found_.clear();
  if (shorter == nullptr || shorter->wantsContext) {
    walkAll(*entry);
  } else {
    // Only the tokens that returned from the shorter stack are left.
    std::vector<Thread> threads;
    pushdown_.arrive(key.back(), Unknown, configurations_.frames(), threads);
    std::erase(threads, Thread{Epsilon, Unknown});
    pushdown_.tidy(threads);
    const Configuration start = configurations_.intern(threads);
    // A state that need not match anything passes on what has come to it.
    const bool passes = terms_[key.back()].nullable;
    entry->trie = shorter->trie;
    for (const Escape& escape : shorter->escapes) {
      walk(*entry->trie, escape.node + 1, (*entry->trie)[escape.node].end, start, *entry);
      if (passes) entry->escapes.push_back(escape);
    }
  }
  store(*entry);
  return entry;
}

/// A walk for the whole stack of the entry's key.
void Masks::walkAll(Entry& entry) {
  const auto& key = entry.key;
  Frame frame = key.back() == End ? Bottom : Unknown;
  const size_t states = key.size() - (key.back() == End ? 1 : 0);
  for (size_t i = states; i-- > 1;) frame = configurations_.frames().push(key[i], frame);
  const Thread threads[] = {{key.front(), frame}};
  const Configuration start = configurations_.intern(threads);
  if (const auto stretch = configurations_.stretch(start, vocabulary_.longestToken()); stretch && stretch->closed) {
    entry.slice = vocabulary_.slice(stretch->characters);
    entry.sliceCharacters = stretch->length;
    entry.trie = entry.slice->rest();
  } else {
    entry.trie = vocabulary_.sharedTrie();
  }
  walk(*entry.trie, 0, static_cast<uint32_t>(entry.trie->size()), start, entry);
  if (entry.escapes.size() <= ManyEscapes) return;
  entry.wantsContext = true;
  entry.escapes = {};
  entry.slice.reset();
  found_.clear();
}

void Masks::walk(const Trie& trie, uint32_t begin, uint32_t end, Configuration start, Entry& entry) {
  if (begin == end) return;
  // path_[d] is the configuration after d bytes below the start.
  const size_t base = trie[begin].depth - size_t{1};
  if (path_.empty()) path_.resize(size_t{vocabulary_.longestToken()} + 1);
  path_[base] = start;
  for (uint32_t i = begin; i < end;) {
    const TrieNode node = trie[i];
    const Configuration next = configurations_.next(path_[node.depth - 1], node.byte);
    if (next == Dead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    if (node.token >= 0) found_.push_back(node.token);
    ++i;
    if (configurations_.escapes(next) && node.end > i) entry.escapes.push_back({i - 1});
  }
}

void Masks::store(Entry& entry) {
  std::sort(entry.escapes.begin(), entry.escapes.end(), [](const Escape& a, const Escape& b) { return a.node < b.node; });
  entry.escapes.erase(std::unique(entry.escapes.begin(), entry.escapes.end(), [](const Escape& a, const Escape& b) { return a.node == b.node; }), entry.escapes.end());
  for (size_t i = 0; i < found_.size(); ++i)
    if (const int32_t twin = vocabulary_.twin(found_[i]); twin >= 0) found_.push_back(twin);
  if (found_.size() * sizeof(int32_t) < vocabulary_.maskWords() * sizeof(uint64_t)) {
    entry.tokens.assign(found_.begin(), found_.end());
    return;
  }
  entry.words.resize(vocabulary_.maskWords());
  for (const int32_t token : found_) set(entry.words, token);
}

Term Masks::saturated(Term term) {
  const uint32_t longest = vocabulary_.longestToken();
  const TermNode node = terms_[term];
  if (node.op == Op::Content) return terms_.content(saturated(node.a));
  if (node.logic || (node.op != Op::Repeat && node.op != Op::Sequence && node.op != Op::Choice)) return term;
  if (term >= saturated_.size()) saturated_.resize(std::max<size_t>(term + 1, 2 * saturated_.size()), UINT32_MAX);
  if (saturated_[term] != UINT32_MAX) return saturated_[term];
  Term result = term;
  if (node.op == Op::Repeat) {
    const bool endless = node.c > longest;
    result = terms_.repeat(saturated(node.a), std::min(node.b, longest + 1), endless ? Unbounded : node.c);
  } else if (node.op == Op::Sequence) {
    std::vector<Term> heads;
    Term rest = term;
    const auto known = [&](Term t) { return t < saturated_.size() && saturated_[t] != UINT32_MAX; };
    for (; terms_[rest].op == Op::Sequence && !known(rest); rest = terms_[rest].b) heads.push_back(terms_[rest].a);
    result = saturated(rest);
    for (size_t i = heads.size(); i-- > 0;) result = terms_.sequence(saturated(heads[i]), result);
  } else {
    std::vector<Term> items(terms_.children(term).begin(), terms_.children(term).end());
    for (Term& item : items) item = saturated(item);
    result = terms_.choice(std::move(items));
  }
  if (term >= saturated_.size()) saturated_.resize(term + 1, UINT32_MAX);
  return saturated_[term] = result;
}

} // namespace mashbox::grammar
