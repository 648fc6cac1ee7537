#include "grammar/trie.hpp"

#include <algorithm>

namespace mashbox::grammar {

void closeTrie(Trie& trie) {
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < trie.size(); ++i) {
    for (; open.size() >= trie[i].depth; open.pop_back()) trie[open.back()].end = i;
    open.push_back(i);
  }
  for (const uint32_t node : open) trie[node].end = static_cast<uint32_t>(trie.size());
}

Trie buildTrie(const std::vector<std::pair<std::string_view, int32_t>>& sorted) {
  Trie trie;
  std::string_view previous;
  for (const auto& [bytes, token] : sorted) {
    size_t shared = 0;
    while (shared < previous.size() && shared < bytes.size() && previous[shared] == bytes[shared]) ++shared;
    for (size_t i = shared; i < bytes.size(); ++i)
      trie.push_back({0, -1, static_cast<uint16_t>(i + 1), static_cast<uint8_t>(bytes[i])});
    trie.back().token = token;
    previous = bytes;
  }
  closeTrie(trie);
  return trie;
}

} // namespace mashbox::grammar
