#pragma once

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

/// The part of a trie that leads to the tokens for which `keep` holds.
template <class Keep> Trie filterTrie(const Trie& trie, const Keep& keep);

/// Fills in `end` of nodes whose depths are known.
void closeTrie(Trie& trie);

template <class Keep> Trie filterTrie(const Trie& trie, const Keep& keep) {
  Trie kept;
  std::vector<TrieNode> path(1);
  size_t written = 0; ///< of the path
  for (const TrieNode& node : trie) {
    const size_t depth = node.depth;
    path.resize(depth);
    path[depth - 1] = node;
    path[depth - 1].token = -1;
    written = std::min(written, depth - 1);
    if (node.token < 0 || !keep(node.token)) continue;
    path[depth - 1].token = node.token;
    for (; written < depth; ++written) kept.push_back(path[written]);
  }
  closeTrie(kept);
  return kept;
}

} // namespace mashbox::grammar
