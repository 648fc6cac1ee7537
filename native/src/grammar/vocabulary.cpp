#include "grammar/vocabulary.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::grammar {
namespace {

constexpr size_t MostSlices = 16;
/// Longer tokens are never allowed.
constexpr size_t LongestToken = 512;

} // namespace

Vocabulary::Vocabulary(std::vector<TokenText> texts, const TokenMerges& merges) : tokens_(std::move(texts)), twins_(tokens_.size(), -1) {
  std::vector<std::pair<std::string_view, int32_t>> sorted;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].text || tokens_[i].bytes.size() > LongestToken) tokens_[i].bytes.clear();
    if (tokens_[i].bytes.empty()) continue;
    longest_ = std::max(longest_, static_cast<uint32_t>(tokens_[i].bytes.size()));
    sorted.emplace_back(tokens_[i].bytes, static_cast<int32_t>(i));
  }
  std::sort(sorted.begin(), sorted.end());
  size_t kept = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (kept > 0 && sorted[kept - 1].first == sorted[i].first) {
      const auto first = static_cast<size_t>(sorted[kept - 1].second), other = static_cast<size_t>(sorted[i].second);
      twins_[other] = std::exchange(twins_[first], sorted[i].second);
      continue;
    }
    sorted[kept++] = sorted[i];
  }
  sorted.resize(kept);
  shapes_.resize(tokens_.size());
  for (const auto& [bytes, token] : sorted) shapes_[static_cast<size_t>(token)] = shapeOf(bytes);
  trie_ = std::make_shared<const Trie>(buildTrie(sorted));
  if (!merges.merges.empty()) merges_.emplace(merges, tokens_);
}

std::vector<int32_t> Vocabulary::cut(std::string_view bytes) const {
  if (merges_)
    if (auto tokens = merges_->cut(bytes); !tokens.empty()) return tokens;
  return longestTokens(bytes);
}

std::vector<int32_t> Vocabulary::longestTokens(std::string_view bytes) const {
  const Trie& trie = *trie_;
  std::vector<int32_t> tokens;
  for (size_t from = 0; from < bytes.size();) {
    int32_t best = -1;
    size_t length = 0, depth = 0;
    for (uint32_t i = 0, end = static_cast<uint32_t>(trie.size()); i < end && from + depth < bytes.size();) {
      if (trie[i].byte != static_cast<uint8_t>(bytes[from + depth])) {
        i = trie[i].end;
        continue;
      }
      end = trie[i].end;
      ++depth;
      if (trie[i].token >= 0) best = trie[i].token, length = depth;
      ++i;
    }
    if (best < 0) break;
    tokens.push_back(best);
    from += length;
  }
  return tokens;
}

std::shared_ptr<const Slice> Vocabulary::slice(const CharacterSet& characters) const {
  return slice(characters, {trie_, 0, static_cast<uint32_t>(trie_->size()), ""});
}

std::shared_ptr<const Slice> Vocabulary::slice(const CharacterSet& characters, const Slice::Source& source) const {
  const std::lock_guard lock(mutex_);
  auto known = std::find_if(slices_.begin(), slices_.end(), [&](const auto& slice) { return slice->characters() == characters && slice->source() == source; });
  if (known == slices_.end()) {
    if (slices_.size() >= MostSlices) slices_.erase(slices_.begin());
    known = slices_.insert(slices_.end(), std::make_shared<const Slice>(characters, source, [&](int32_t token) {
      return source.prefix.empty() ? shapes_[static_cast<size_t>(token)] : shapeOf(bytes(token).substr(source.prefix.size()));
    }, twins_));
  }
  std::rotate(known, known + 1, slices_.end());
  return slices_.back();
}

} // namespace mashbox::grammar
