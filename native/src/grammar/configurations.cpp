#include "grammar/configurations.hpp"

#include "grammar/free_text.hpp"

#include <algorithm>
#include <bit>

namespace mashbox::grammar {
namespace {

/// Fewer characters than this are not worth a slice of the vocabulary: a walk that follows them is short.
constexpr int FewCharacters = 16;

uint64_t hashOf(std::span<const Thread> threads) {
  uint64_t hash = threads.size();
  for (const auto& [state, frame] : threads) hash = mixHash(hash, uint64_t{state} << 32 | frame);
  return hash ^ hash >> 32;
}

} // namespace

void Configurations::tidy() {
  if (width_ != 0 && !full()) return;
  width_ = automaton_.classes();
  frames_.clear();
  threads_.clear();
  begins_.assign(1, 0);
  rows_.clear();
  escapes_.clear();
  left_.clear();
  slots_.assign(256, UINT32_MAX);
  uniformAt_.clear();
  uniforms_.clear();
  intern({});
}

Configuration Configurations::intern(std::span<const Thread> threads) {
  const uint64_t hash = hashOf(threads);
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != UINT32_MAX; slot = (slot + 1) & (slots_.size() - 1)) {
    const uint32_t known = slots_[slot];
    const auto begin = threads_.begin() + begins_[known], end = threads_.begin() + begins_[known + 1];
    if (std::equal(begin, end, threads.begin(), threads.end())) return known;
  }
  if (rows_.size() + width_ > limits_.walkEntries) budget_.exceed("finding the tokens that may come next takes too much memory");
  if (budget_.exceeded() && !escapes_.empty()) return Dead;
  const uint32_t left = leftOf(threads);
  const auto configuration = static_cast<Configuration>(escapes_.size());
  slots_[slot] = configuration;
  threads_.insert(threads_.end(), threads.begin(), threads.end());
  begins_.push_back(static_cast<uint32_t>(threads_.size()));
  rows_.insert(rows_.end(), width_, threads.empty() ? Dead : Missing);
  escapes_.push_back(std::any_of(threads.begin(), threads.end(), [](const Thread& thread) { return thread == Thread{Epsilon, Unknown}; }));
  left_.push_back(left);
  uniformAt_.push_back(UINT32_MAX);
  if (2 * escapes_.size() > slots_.size()) {
    slots_.assign(2 * slots_.size(), UINT32_MAX);
    for (uint32_t i = 0; i < escapes_.size(); ++i) {
      size_t free = hashOf(std::span(threads_).subspan(begins_[i], begins_[i + 1] - begins_[i])) & (slots_.size() - 1);
      while (slots_[free] != UINT32_MAX) free = (free + 1) & (slots_.size() - 1);
      slots_[free] = i;
    }
  }
  return configuration;
}

uint32_t Configurations::leftOf(std::span<const Thread> threads) {
  uint32_t least = Unbounded;
  for (const auto& [state, top] : threads) {
    least = std::min(least, automaton_.left(state));
    for (Frame frame = top; frame != Bottom && frame != Unknown; frame = frames_[frame].below) least = std::min(least, automaton_.left(frames_[frame].state));
  }
  return least;
}

Configuration Configurations::compute(Configuration configuration, uint32_t byteClass) {
  budget_.tick();
  const auto threads = std::span(threads_).subspan(begins_[configuration], begins_[configuration + 1] - begins_[configuration]);
  pushdown_.step(threads, byteClass, frames_, scratch_);
  const Configuration next = intern(scratch_);
  return rows_[size_t{configuration} * width_ + byteClass] = next;
}

/// Whether all well-formed characters that go on from `utf8` lead from `from` to `target`.
bool Configurations::othersLeadTo(Configuration from, uint8_t utf8, Configuration target, unsigned& work) {
  Configuration known = Dead;
  uint8_t knownUtf8 = BrokenUtf8;
  for (unsigned byte = 0x80; byte <= 0xf4; ++byte) {
    const uint8_t after = stepUtf8(utf8, static_cast<uint8_t>(byte));
    if (after == BrokenUtf8) continue;
    const Configuration to = next(from, static_cast<uint8_t>(byte));
    if (to == Dead) return false;
    if (to == known && after == knownUtf8) continue;
    if (++work > 64) return false;
    if (after == 0 ? to != target : escapes(to) || !othersLeadTo(to, after, target, work)) return false;
    known = to;
    knownUtf8 = after;
  }
  return true;
}

const Configurations::Uniform& Configurations::uniform(Configuration configuration) {
  if (uniformAt_[configuration] != UINT32_MAX) return uniforms_[uniformAt_[configuration]];
  Uniform found;
  std::array<Configuration, 128> after;
  for (unsigned byte = 0; byte < 128; ++byte) after[byte] = next(configuration, static_cast<uint8_t>(byte));
  std::array<Configuration, 128> sorted = after;
  std::sort(sorted.begin(), sorted.end());
  long most = 0;
  for (auto i = sorted.begin(); i != sorted.end();) {
    const auto end = std::upper_bound(i, sorted.end(), *i);
    if (*i != Dead && !escapes(*i) && end - i > most) {
      most = end - i;
      found.next = *i;
    }
    i = end;
  }
  if (most >= FewCharacters) {
    for (unsigned byte = 0; byte < 128; ++byte)
      if (after[byte] == found.next) found.characters.insert(byte);
    unsigned work = 0;
    found.characters.others = othersLeadTo(configuration, 0, found.next, work);
  } else {
    found.next = Dead;
  }
  uniformAt_[configuration] = static_cast<uint32_t>(uniforms_.size());
  uniforms_.push_back(found);
  return uniforms_.back();
}

bool Configurations::takesAny(Configuration configuration, const CharacterSet& characters) {
  for (unsigned byte = 0; byte < 128; ++byte)
    if ((characters.ascii[byte / 64] >> byte % 64 & 1) != 0 && next(configuration, static_cast<uint8_t>(byte)) != Dead) return true;
  for (unsigned byte = 0xc2; characters.others && byte <= 0xf4; ++byte)
    if (next(configuration, static_cast<uint8_t>(byte)) != Dead) return true;
  return false;
}

std::optional<Stretch> Configurations::stretch(Configuration configuration, uint32_t longest) {
  const Uniform first = uniform(configuration);
  if (first.next == Dead) return std::nullopt;
  Stretch result{first.characters, 1, false};
  for (Configuration place = first.next; result.length < longest; ++result.length) {
    const Uniform& more = uniform(place);
    if (more.next == Dead || !more.characters.contains(first.characters)) {
      result.closed = !takesAny(place, first.characters);
      return result;
    }
    if (more.next == place) break;
    place = uniforms_[uniformAt_[place]].next;
  }
  result.length = UINT32_MAX;
  result.closed = true;
  return result;
}

} // namespace mashbox::grammar
