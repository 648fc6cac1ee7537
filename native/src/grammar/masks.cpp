#include "grammar/masks.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace mashbox::grammar {
namespace {

/// In a key: what lies below the last state is nothing.
constexpr Term End = UINT32_MAX;
constexpr size_t ManyEscapes = 4096;
/// Smaller parts of a trie are not worth a slice of their own.
constexpr uint32_t BigSubtree = 8192;
/// Counts up to this one are never taken for greater ones.
constexpr uint32_t FewRounds = 3;
constexpr uint32_t NoneAlike = UINT32_MAX;
constexpr int MostAttempts = 3;
constexpr size_t MostLikenesses = 8;

void set(std::span<uint64_t> mask, int32_t token) { mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << token % 64; }

} // namespace

size_t Masks::Entry::bytes() const {
  return sizeof *this + key.size() * sizeof(Term) + cuts.size() * sizeof(Cut) + tokens.size() * sizeof(int32_t) + words.size() * sizeof(uint64_t) + escapes.size() * sizeof(Escape);
}

size_t Masks::KeyHash::operator()(std::span<const Term> key) const {
  uint64_t hash = key.size();
  for (const Term term : key) hash = mixHash(hash, term);
  return hash;
}

Masks::Masks(TermTable& terms, Automaton& automaton, Pushdown& pushdown, const Vocabulary& vocabulary, Budget& budget, const Limits& limits)
    : terms_(terms), pushdown_(pushdown), vocabulary_(vocabulary), budget_(budget), limits_(limits), configurations_(terms, automaton, pushdown, budget, limits),
      openRounds_(std::max(vocabulary.longestToken() + 1, 256u)), path_(size_t{vocabulary.longestToken()} + 1), lefts_(path_.size()) {}

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
    if (thread.state != Epsilon && !budget_.exceeded()) find({alike(thread.state, FewRounds)}, nullptr);
}

/// First with states that stand for many: they serve if no token makes more rounds than what was taken for endless allows.
void Masks::addThread(Thread thread, const Frames& frames, std::span<uint64_t> mask) {
  uint32_t above = FewRounds;
  for (int attempt = 0; attempt < MostAttempts && above < openRounds_ && !budget_.exceeded(); ++attempt) {
    const uint32_t rounds = collect(thread, frames, above);
    if (rounds > above) above = rounds;
    else if (addChain(thread, frames, mask)) return;
    else break;
  }
  collect(thread, frames, NoneAlike);
  addChain(thread, frames, mask);
}

uint32_t Masks::collect(Thread thread, const Frames& frames, uint32_t above) {
  chain_.clear();
  std::vector<Term> key{alike(thread.state, above)};
  uint32_t rounds = 0;
  for (Frame frame = thread.frame; !budget_.exceeded(); frame = frames[frame].below) {
    chain_.push_back(find(key, chain_.empty() ? nullptr : chain_.back().get()));
    const Entry& entry = *chain_.back();
    rounds = std::max(rounds, entry.rounds);
    if (!entry.wantsContext && (entry.escapes.empty() || frame == Bottom)) break;
    if (key.back() == End) break;
    key.push_back(frame == Bottom ? End : alike(frames[frame].state, above));
  }
  return rounds;
}

bool Masks::addChain(Thread thread, const Frames& frames, std::span<uint64_t> mask) {
  for (const auto& entry : chain_) {
    if (entry->wantsContext) continue;
    if (!addCuts(*entry, thread, frames, mask)) return false;
    for (const int32_t token : entry->tokens) set(mask, token);
    for (size_t i = 0; i < entry->words.size(); ++i) mask[i] |= entry->words[i];
  }
  return true;
}

/// How many characters an open entry's cuts let through is the thread's own matter.
bool Masks::addCuts(const Entry& entry, Thread thread, const Frames& frames, std::span<uint64_t> mask) {
  if (entry.cuts.empty()) return true;
  if (!entry.open) {
    for (const auto& [slice, characters] : entry.cuts) slice->addTo(mask, characters);
    return true;
  }
  std::vector<Term> key{alike(thread.state, NoneAlike)};
  for (Frame frame = thread.frame; key.size() < entry.key.size(); frame = frames[frame].below)
    key.push_back(frame == Bottom ? End : alike(frames[frame].state, NoneAlike));
  const Configuration start = startOf(key);
  for (const auto& [slice, characters] : entry.cuts) {
    Configuration place = start;
    for (const char byte : slice->source().prefix) place = configurations_.next(place, static_cast<uint8_t>(byte));
    const auto stretch = configurations_.stretch(place, vocabulary_.longestToken());
    if (!stretch || !stretch->closed || !(stretch->characters == slice->characters())) return false;
    slice->addTo(mask, stretch->length);
  }
  return true;
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
  entry->open = std::any_of(key.begin(), key.end(), [&](Term term) { return term != End && terms_[term].left != Unbounded; });
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
    entry->tries = shorter->tries;
    for (const Escape& escape : shorter->escapes) {
      walk(escape.trie, escape.node + 1, (*entry->tries[escape.trie])[escape.node].end, start, configurations_.left(start), *entry);
      if (passes) entry->escapes.push_back(escape);
    }
  }
  store(*entry);
  return entry;
}

Configuration Masks::startOf(const std::vector<Term>& key) {
  Frame frame = key.back() == End ? Bottom : Unknown;
  const size_t states = key.size() - (key.back() == End ? 1 : 0);
  for (size_t i = states; i-- > 1;) frame = configurations_.frames().push(key[i], frame);
  const Thread threads[] = {{key.front(), frame}};
  return configurations_.intern(threads);
}

/// A walk for the whole stack of the entry's key.
void Masks::walkAll(Entry& entry) {
  const Configuration start = startOf(entry.key);
  const auto end = static_cast<uint32_t>(vocabulary_.trie().size());
  if (!cut({vocabulary_.sharedTrie(), 0, end, ""}, start, Unbounded, entry)) {
    entry.tries.push_back(vocabulary_.sharedTrie());
    walk(0, 0, end, start, Unbounded, entry);
  }
  if (entry.escapes.size() <= ManyEscapes) return;
  entry.wantsContext = true;
  entry.rounds = 0;
  entry.escapes = {};
  entry.cuts = {};
  found_.clear();
}

bool Masks::cut(const Slice::Source& source, Configuration start, uint32_t left, Entry& entry) {
  const auto stretch = configurations_.stretch(start, vocabulary_.longestToken());
  if (!stretch || !stretch->closed) return false;
  const auto slice = vocabulary_.slice(stretch->characters, source);
  entry.cuts.push_back({slice, stretch->length});
  entry.rounds = std::max(entry.rounds, roundsOf(left));
  entry.tries.push_back(slice->rest());
  // The nodes of the prefix come first.
  const auto size = static_cast<uint32_t>(slice->rest()->size());
  walk(static_cast<uint32_t>(entry.tries.size() - 1), std::min(size, static_cast<uint32_t>(source.prefix.size())), size, start, left, entry);
  return true;
}

void Masks::walk(uint32_t index, uint32_t begin, uint32_t end, Configuration start, uint32_t left, Entry& entry) {
  if (begin == end) return;
  const std::shared_ptr<const Trie> held = entry.tries[index];
  const Trie& trie = *held;
  // path_[d] is the configuration after d bytes below the start.
  const size_t base = trie[begin].depth - size_t{1};
  path_[base] = start;
  lefts_[base] = left;
  uint32_t least = Unbounded;
  for (uint32_t i = begin; i < end;) {
    const TrieNode node = trie[i];
    const Configuration next = configurations_.next(path_[node.depth - 1], node.byte);
    if (next == Dead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    lefts_[node.depth] = std::min(lefts_[node.depth - 1], configurations_.left(next));
    if (node.token >= 0) {
      found_.push_back(node.token);
      least = std::min(least, lefts_[node.depth]);
    }
    ++i;
    if (node.end == i) continue;
    if (configurations_.escapes(next)) {
      entry.escapes.push_back({index, i - 1});
      least = std::min(least, lefts_[node.depth]);
    }
    if (node.end - i < BigSubtree) continue;
    // Big parts lie near the root: this one's bytes are those of the nodes above it.
    std::string prefix(node.depth, static_cast<char>(node.byte));
    for (uint32_t above = i - 1, depth = node.depth; depth > 1; --above)
      if (trie[above].depth == depth - 1) prefix[--depth - 1] = static_cast<char>(trie[above].byte);
    if (cut({held, i, node.end, prefix}, next, lefts_[node.depth], entry)) i = node.end;
  }
  entry.rounds = std::max(entry.rounds, roundsOf(least));
}

void Masks::store(Entry& entry) {
  std::sort(entry.escapes.begin(), entry.escapes.end());
  entry.escapes.erase(std::unique(entry.escapes.begin(), entry.escapes.end()), entry.escapes.end());
  for (size_t i = 0; i < found_.size(); ++i)
    if (const int32_t twin = vocabulary_.twin(found_[i]); twin >= 0) found_.push_back(twin);
  if (found_.size() * sizeof(int32_t) < vocabulary_.maskWords() * sizeof(uint64_t)) {
    entry.tokens.assign(found_.begin(), found_.end());
    return;
  }
  entry.words.resize(vocabulary_.maskWords());
  for (const int32_t token : found_) set(entry.words, token);
}

Term Masks::alike(Term term, uint32_t above) {
  auto known = std::find_if(likenesses_.begin(), likenesses_.end(), [&](const Likeness& likeness) { return likeness.above == above; });
  if (known == likenesses_.end()) {
    if (likenesses_.size() >= MostLikenesses) likenesses_.erase(likenesses_.begin());
    known = likenesses_.insert(likenesses_.end(), {above, {}, {}});
  }
  return alike(term, *known, false);
}

Term Masks::alike(Term term, Likeness& likeness, bool inside) {
  const uint32_t longest = vocabulary_.longestToken(), above = likeness.above;
  const TermNode node = terms_[term];
  if (node.op != Op::Repeat && node.op != Op::Sequence && node.op != Op::Choice && node.op != Op::Content && node.op != Op::Both) return term;
  if (inside && above == NoneAlike) return term;
  auto& table = inside ? likeness.inside : likeness.outside;
  const auto known = [&](Term t) { return t < table.size() ? table[t] : UINT32_MAX; };
  if (known(term) != UINT32_MAX) return known(term);
  Term result = term;
  if (node.op == Op::Content) {
    result = terms_.content(alike(node.a, likeness, inside));
  } else if (node.op == Op::Repeat) {
    const Term item = alike(node.a, likeness, inside);
    const uint32_t min = inside ? node.b : std::min(node.b, longest + 1);
    // What must come at least is not left open: tokens that end a repeat early would not be seen.
    if (node.c != Unbounded && node.c > longest && !inside) result = terms_.repeat(item, min, Unbounded);
    else if (node.c != Unbounded && node.c > above && node.b <= 2) result = terms_.repeatOpen(item, min, openRounds_);
    else result = terms_.repeat(item, min, node.c);
  } else if (node.op == Op::Sequence) {
    std::vector<Term> heads;
    Term rest = term;
    for (; terms_[rest].op == Op::Sequence && known(rest) == UINT32_MAX; rest = terms_[rest].b) heads.push_back(terms_[rest].a);
    result = alike(rest, likeness, inside);
    for (size_t i = heads.size(); i-- > 0;) result = terms_.sequence(alike(heads[i], likeness, inside), result);
  } else {
    std::vector<Term> items(terms_.children(term).begin(), terms_.children(term).end());
    for (Term& item : items) item = alike(item, likeness, inside || node.op == Op::Both);
    result = node.op == Op::Both ? terms_.both(std::move(items)) : terms_.choice(std::move(items));
  }
  if (term >= table.size()) table.resize(std::max<size_t>(term + 1, 2 * table.size()), UINT32_MAX);
  return table[term] = result;
}

} // namespace mashbox::grammar
