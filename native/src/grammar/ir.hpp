#pragma once

#include "base/result.hpp"
#include "grammar/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// The grammar IR as decoded from its bytes (native/GRAMMAR.md). Nodes name their children by index; children come first.
namespace mashbox::grammar::ir {

using NodeIndex = uint32_t;
inline constexpr uint32_t Unbounded = UINT32_MAX;

struct Text {
  std::string value;
};
struct Class {
  bool negated;
  std::vector<std::pair<uint32_t, uint32_t>> ranges;
};
struct Sequence {
  std::vector<NodeIndex> items;
};
struct Choice {
  std::vector<NodeIndex> items;
};
struct Repeat {
  NodeIndex item;
  uint32_t min, max;
};
struct RuleRef {
  uint32_t rule; ///< index into `Grammar::rules`
};
struct And {
  std::vector<NodeIndex> items;
};
struct Not {
  NodeIndex item;
};
struct Lexeme {
  NodeIndex item;
};
struct Content {
  NodeIndex item;
};
struct Permutation {
  struct Item {
    NodeIndex node;
    bool required, many;
  };
  bool ordered;
  uint32_t min, max;
  NodeIndex separator;
  std::vector<Item> items;
};
struct Free {
  std::vector<std::string> until;
  std::vector<int32_t> untilTokens;
  std::vector<std::string> except;
};
struct Token {
  std::vector<int32_t> ids;
};

using Node = std::variant<Text, Class, Sequence, Choice, Repeat, RuleRef, And, Not, Lexeme, Permutation, Free, Token, Content>;

struct Rule {
  std::string name;
  NodeIndex node;
};

struct Grammar {
  std::vector<Node> nodes;
  std::vector<Rule> rules;
  uint32_t root;
};

/// The children of a node, rules not followed.
std::vector<NodeIndex> children(const Node& node);

/// Checks everything that can be said without compiling: indices, UTF-8, ranges, counts, names, and token ids below `tokens`.
/// Errors are Invalid, or TooComplex for an input above the limit, and name the rule or node.
Result<Grammar> decode(std::span<const std::byte> bytes, uint32_t tokens, const Limits& limits);

} // namespace mashbox::grammar::ir
