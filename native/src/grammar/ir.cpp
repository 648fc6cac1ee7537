#include "grammar/ir.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace mashbox::grammar::ir {
namespace {

constexpr uint32_t LargestCodePoint = 0x10ffff;

const char* const kindNames[] = {"?", "text", "class", "sequence", "choice", "repeat", "rule", "and", "not", "lexeme", "permutation", "free", "token", "content"};

Error invalid(std::string message) { return {ErrorKind::Invalid, "grammar: " + std::move(message), "grammar"}; }

/// Reads numbers and texts; after the first fault every read gives 0 or "".
class Cursor {
public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool atEnd() const { return offset_ == bytes_.size(); }
  void fail() { ok_ = false; }

  uint8_t byte() {
    if (!ok_ || offset_ == bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<uint8_t>(bytes_[offset_++]);
  }

  uint32_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const uint8_t part = byte();
      value |= uint64_t{part & 0x7fu} << shift;
      if ((part & 0x80) != 0) continue;
      if (value > UINT32_MAX) break;
      return ok_ ? static_cast<uint32_t>(value) : 0;
    }
    ok_ = false;
    return 0;
  }

  /// A count of things that take at least one byte each.
  uint32_t count() {
    const uint32_t value = number();
    if (value <= bytes_.size() - offset_) return value;
    ok_ = false;
    return 0;
  }

  std::string text() {
    const uint32_t size = count();
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + offset_, ok_ ? size : 0);
    offset_ += text.size();
    return text;
  }

private:
  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

class Decoder {
public:
  Decoder(std::span<const std::byte> bytes, uint32_t tokens) : in_(bytes), tokens_(tokens) {}

  Result<Grammar> decode() {
    if (in_.byte() != 'M' || in_.byte() != 'B' || in_.byte() != 'G' || in_.byte() != '1') return invalid("these are no bytes of a grammar");
    if (auto names = readNames(); !names) return names.error();
    if (auto nodes = readNodes(); !nodes) return nodes.error();
    if (auto rules = readRules(); !rules) return rules.error();
    if (auto resolved = resolve(); !resolved) return resolved.error();
    return std::move(grammar_);
  }

private:
  Error truncated() const { return invalid("its bytes end early or hold a number that is too large"); }
  Error nodeError(const std::string& message) const {
    return invalid("node " + std::to_string(grammar_.nodes.size()) + " (" + kind_ + "): " + message);
  }

  Result<void> readNames() {
    const uint32_t count = in_.count();
    for (uint32_t i = 0; i < count && in_.ok(); ++i) names_.push_back(in_.text());
    if (!in_.ok()) return truncated();
    for (const auto& name : names_)
      if (!isUtf8(name)) return invalid("the name \"" + escaped(name) + "\" is not UTF-8");
    return {};
  }

  Result<void> readNodes() {
    const uint32_t count = in_.count();
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t kind = in_.byte();
      kind_ = kind < std::size(kindNames) ? kindNames[kind] : "?";
      std::optional<Node> node = readNode(kind);
      if (!fault_.empty()) return nodeError(fault_);
      if (!in_.ok()) return truncated();
      if (!node) return nodeError("the kind " + std::to_string(kind) + " does not exist");
      grammar_.nodes.push_back(std::move(*node));
    }
    return {};
  }

  std::optional<Node> readNode(uint8_t kind) {
    switch (kind) {
      case 1: return Text{readText()};
      case 2: return readClass();
      case 3: return Sequence{readItems()};
      case 4: return Choice{readItems()};
      case 5: {
        const NodeIndex item = readChild();
        const uint32_t min = in_.number(), max = readLimit();
        if (max < min) fault("max is less than min");
        return Repeat{item, min, max};
      }
      case 6: {
        const uint32_t name = in_.number();
        if (name >= names_.size()) fault("there is no name " + std::to_string(name));
        return RuleRef{name};
      }
      case 7: {
        And node{readItems()};
        if (node.items.empty()) fault("it has no items");
        return node;
      }
      case 8: return Not{readChild()};
      case 9: return Lexeme{readChild()};
      case 10: return readPermutation();
      case 11: return readFree();
      case 12: {
        Token node{readTokens()};
        if (node.ids.empty()) fault("it has no ids");
        return node;
      }
      case 13: return Content{readChild()};
      default: return std::nullopt;
    }
  }

  void fault(std::string message) {
    if (fault_.empty() && in_.ok()) fault_ = std::move(message);
  }

  std::string readText() {
    std::string text = in_.text();
    if (!isUtf8(text)) fault("\"" + escaped(text) + "\" is not UTF-8");
    return text;
  }

  NodeIndex readChild() {
    const uint32_t index = in_.number();
    if (index >= grammar_.nodes.size()) fault("node " + std::to_string(index) + " does not come before it");
    return index;
  }

  std::vector<NodeIndex> readItems() {
    std::vector<NodeIndex> items(in_.count());
    for (auto& item : items) item = readChild();
    return items;
  }

  uint32_t readLimit() {
    const uint32_t limit = in_.number();
    return limit == 0 ? Unbounded : limit - 1;
  }

  std::vector<int32_t> readTokens() {
    std::vector<int32_t> ids(in_.count());
    for (auto& id : ids) {
      const uint32_t token = in_.number();
      if (token >= tokens_) fault("token " + std::to_string(token) + " is not one of the model's " + std::to_string(tokens_));
      id = static_cast<int32_t>(token);
    }
    return ids;
  }

  Class readClass() {
    Class node{in_.byte() != 0, {}};
    node.ranges.resize(in_.count());
    for (auto& [low, high] : node.ranges) {
      low = in_.number();
      high = in_.number();
      if (high < low || high > LargestCodePoint)
        fault("the range " + std::to_string(low) + " to " + std::to_string(high) + " is not one of code points");
    }
    return node;
  }

  Permutation readPermutation() {
    Permutation node;
    node.ordered = in_.byte() != 0;
    node.min = in_.number();
    node.max = readLimit();
    node.separator = readChild();
    node.items.resize(in_.count());
    for (auto& item : node.items) {
      const uint8_t flags = in_.byte();
      if (flags > 3) fault("an item has unknown flags");
      item = {readChild(), (flags & 1) != 0, (flags & 2) != 0};
    }
    if (node.max < node.min) fault("max is less than min");
    return node;
  }

  Free readFree() {
    Free node;
    for (uint32_t rest = in_.count(); rest > 0 && in_.ok(); --rest) {
      const uint8_t kind = in_.byte();
      if (kind > 1) fault("a trigger has the unknown kind " + std::to_string(kind));
      if (kind == 0) node.until.push_back(readText());
      else for (const int32_t id : readTokens()) node.untilTokens.push_back(id);
    }
    for (uint32_t rest = in_.count(); rest > 0 && in_.ok(); --rest) node.except.push_back(readText());
    const auto empty = [](const std::string& text) { return text.empty(); };
    if (std::any_of(node.until.begin(), node.until.end(), empty) || std::any_of(node.except.begin(), node.except.end(), empty))
      fault("a text is empty");
    return node;
  }

  Result<void> readRules() {
    const uint32_t count = in_.count();
    for (uint32_t i = 0; i < count && in_.ok(); ++i) {
      const uint32_t name = in_.number(), node = in_.number();
      if (!in_.ok()) break;
      if (name >= names_.size()) return invalid("rule " + std::to_string(i) + " has no name");
      if (node >= grammar_.nodes.size()) return invalid("rule \"" + escaped(names_[name]) + "\" has no node");
      if (!ruleOf_.emplace(name, i).second) return invalid("rule \"" + escaped(names_[name]) + "\" is defined twice");
      grammar_.rules.push_back({names_[name], node});
    }
    root_ = in_.number();
    if (!in_.ok()) return truncated();
    if (!in_.atEnd()) return invalid("there are bytes after its end");
    return {};
  }

  /// Names → rules.
  Result<void> resolve() {
    const auto find = [&](uint32_t name) -> Result<uint32_t> {
      const auto rule = ruleOf_.find(name);
      if (rule != ruleOf_.end()) return rule->second;
      return invalid(name < names_.size() ? "rule \"" + escaped(names_[name]) + "\" is not defined" : "it has no root");
    };
    for (auto& node : grammar_.nodes) {
      auto* reference = std::get_if<RuleRef>(&node);
      if (reference == nullptr) continue;
      const auto rule = find(reference->rule);
      if (!rule) return rule.error();
      reference->rule = *rule;
    }
    const auto root = find(root_);
    if (!root) return root.error();
    grammar_.root = *root;
    return {};
  }

  Cursor in_;
  uint32_t tokens_;
  Grammar grammar_{};
  std::vector<std::string> names_;
  std::unordered_map<uint32_t, uint32_t> ruleOf_;
  uint32_t root_ = 0;
  const char* kind_ = "?";
  std::string fault_;
};

} // namespace

std::vector<NodeIndex> children(const Node& node) {
  if (const auto* n = std::get_if<Sequence>(&node)) return n->items;
  if (const auto* n = std::get_if<Choice>(&node)) return n->items;
  if (const auto* n = std::get_if<And>(&node)) return n->items;
  if (const auto* n = std::get_if<Repeat>(&node)) return {n->item};
  if (const auto* n = std::get_if<Not>(&node)) return {n->item};
  if (const auto* n = std::get_if<Lexeme>(&node)) return {n->item};
  if (const auto* n = std::get_if<Content>(&node)) return {n->item};
  std::vector<NodeIndex> result;
  if (const auto* n = std::get_if<Permutation>(&node)) {
    result.push_back(n->separator);
    for (const auto& item : n->items) result.push_back(item.node);
  }
  return result;
}

Result<Grammar> decode(std::span<const std::byte> bytes, uint32_t tokens, const Limits& limits) {
  if (bytes.size() > limits.irBytes)
    return Error{ErrorKind::TooComplex, "grammar: its " + std::to_string(bytes.size()) + " bytes are more than the " + std::to_string(limits.irBytes) + " that are possible", "grammar"};
  return Decoder(bytes, tokens).decode();
}

} // namespace mashbox::grammar::ir
