#include "grammar/vocabulary.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::grammar {
namespace {

constexpr size_t MostSlices = 12;
/// Longer tokens are never allowed.
constexpr size_t LongestToken = 512;

} // namespace

Vocabulary::Vocabulary(std::vector<TokenText> tokens) : tokens_(std::move(tokens)), twins_(tokens_.size(), -1) {
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
  for (const auto& [bytes, token] : sorted) shapes_.push_back(shapeOf(bytes));
  trie_ = std::make_shared<const Trie>(buildTrie(sorted));
}

std::shared_ptr<const Slice> Vocabulary::slice(const CharacterSet& characters) const {
  const std::lock_guard lock(mutex_);
  auto known = std::find_if(slices_.begin(), slices_.end(), [&](const auto& slice) { return slice->characters() == characters; });
  if (known == slices_.end()) {
    if (slices_.size() >= MostSlices) slices_.erase(slices_.begin());
    known = slices_.insert(slices_.end(), std::make_shared<const Slice>(characters, *trie_, shapes_, twins_));
  }
  std::rotate(known, known + 1, slices_.end());
  return slices_.back();
}

} // namespace mashbox::grammar
