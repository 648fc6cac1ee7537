#include "grammar/slices.hpp"

#include "grammar/free_text.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::grammar {
namespace {

void add(std::span<uint64_t> mask, const std::vector<uint64_t>& more) {
  for (size_t i = 0; i < more.size(); ++i) mask[i] |= more[i];
}

void set(std::vector<uint64_t>& mask, int32_t token) { mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << token % 64; }

} // namespace

TokenShape shapeOf(std::string_view bytes) {
  TokenShape shape{{}, 0, false};
  uint8_t state = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x80) shape.characters.insert(byte);
    else shape.characters.others = true;
    state = stepUtf8(state, byte);
    if (state == BrokenUtf8) return shape;
    if (state == 0) ++shape.count;
  }
  shape.whole = state == 0 && !bytes.empty();
  return shape;
}

Slice::Slice(const CharacterSet& characters, Source source, const std::function<TokenShape(int32_t)>& shapeOf, std::span<const int32_t> twins)
    : characters_(characters), source_(std::move(source)), all_((twins.size() + 63) / 64) {
  for (auto& words : upTo_) words.resize(all_.size());
  const auto& [trie, begin, end, prefix] = source_;
  rest_ = std::make_shared<const Trie>(filterTrie(*trie, begin, end, prefix, [&](int32_t first) {
    const auto [content, count, whole] = shapeOf(first);
    if (!whole || !characters.contains(content)) return true;
    longest_ = std::max<uint32_t>(longest_, count);
    for (int32_t token = first; token >= 0; token = twins[static_cast<size_t>(token)]) {
      set(all_, token);
      if (count <= Steps) set(upTo_[count - 1u], token);
      else longer_.emplace_back(count, token);
    }
    return false;
  }));
  for (uint32_t i = 1; i < Steps; ++i) add(upTo_[i], upTo_[i - 1]);
  std::sort(longer_.begin(), longer_.end());
}

void Slice::addTo(std::span<uint64_t> mask, uint32_t characters) const {
  if (characters == 0) return;
  if (characters >= longest_) return add(mask, all_);
  add(mask, upTo_[std::min(characters, Steps) - 1]);
  for (const auto& [count, token] : longer_) {
    if (count > characters) return;
    mask[static_cast<size_t>(token) / 64] |= uint64_t{1} << token % 64;
  }
}

} // namespace mashbox::grammar
