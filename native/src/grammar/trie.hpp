#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mashbox::grammar {

/// The bytes of many tokens as a tree, in depth-first order: after a node come the nodes below it, up to `end`.
struct TrieNode {
  uint32_t end;
  int32_t token; ///< that ends here, or -1
  uint16_t depth; ///< bytes from the root, the node's own included
  uint8_t byte;
};

using Trie = std::vector<TrieNode>;

/// Of tokens that are sorted by their bytes and distinct; at most 65535 bytes each.
Trie buildTrie(const std::vector<std::pair<std::string_view, int32_t>>& sorted);

/// Fills in `end` of nodes whose depths are known.
void closeTrie(Trie& trie);

/// The part of a trie's nodes from `begin` to `end`, which lie below the bytes `prefix`, that leads to the tokens for which `keep` holds; it
/// is asked once for each node with a token, in order. What is kept has the nodes of the prefix too.
template <class Keep> Trie filterTrie(const Trie& trie, uint32_t begin, uint32_t end, std::string_view prefix, const Keep& keep) {
  Trie kept;
  std::array<uint8_t, 65536> path;
  std::copy(prefix.begin(), prefix.end(), path.begin());
  size_t written = 0; ///< bytes of the path that are in `kept`
  for (uint32_t i = begin; i < end; ++i) {
    const TrieNode& node = trie[i];
    const size_t depth = node.depth;
    path[depth - 1] = node.byte;
    written = std::min(written, depth - 1);
    if (node.token < 0 || !keep(node.token)) continue;
    for (; written < depth; ++written) kept.push_back({0, -1, static_cast<uint16_t>(written + 1), path[written]});
    kept.back().token = node.token;
  }
  closeTrie(kept);
  return kept;
}

} // namespace mashbox::grammar
