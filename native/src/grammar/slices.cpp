#include "grammar/slices.hpp"

#include "grammar/free_text.hpp"

#include <algorithm>

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

Slice::Slice(const CharacterSet& characters, const Trie& trie, std::span<const TokenShape> shapes, std::span<const int32_t> twins)
    : characters_(characters), all_((shapes.size() + 63) / 64) {
  const auto inside = [&](int32_t token) {
    const TokenShape& shape = shapes[static_cast<size_t>(token)];
    return shape.whole && characters.contains(shape.characters);
  };
  rest_ = std::make_shared<const Trie>(filterTrie(trie, [&](int32_t token) { return !inside(token); }));
  for (auto& words : upTo_) words.resize(all_.size());
  for (const TrieNode& node : trie) {
    if (node.token < 0 || !inside(node.token)) continue;
    const uint32_t count = shapes[static_cast<size_t>(node.token)].count;
    longest_ = std::max(longest_, count);
    for (int32_t token = node.token; token >= 0; token = twins[static_cast<size_t>(token)]) {
      set(all_, token);
      if (count <= Steps) set(upTo_[count - 1], token);
      else longer_.emplace_back(static_cast<uint16_t>(count), token);
    }
  }
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
