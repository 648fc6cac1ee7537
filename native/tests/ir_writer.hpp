#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mashbox::test {

/// Writes the bytes of native/GRAMMAR.md. Node functions return the index of the node that they add.
class IrWriter {
public:
  using Node = uint32_t;
  struct Item {
    Node node;
    bool required = false, many = false;
  };
  struct Trigger {
    std::string text;
    std::vector<uint32_t> tokens;
  };
  static constexpr uint32_t Unbounded = UINT32_MAX;

  Node text(std::string_view value) { return start(1).string(value).done(); }
  Node set(const std::vector<std::pair<uint32_t, uint32_t>>& ranges, bool negated = false) {
    start(2).byte(negated).number(ranges.size());
    for (const auto& [low, high] : ranges) number(low).number(high);
    return done();
  }
  Node sequence(const std::vector<Node>& items) { return start(3).numbers(items).done(); }
  Node choice(const std::vector<Node>& items) { return start(4).numbers(items).done(); }
  Node repeat(Node item, uint32_t min = 0, uint32_t max = Unbounded) { return start(5).number(item).number(min).limit(max).done(); }
  Node rule(std::string_view name) { return start(6).number(this->name(name)).done(); }
  Node both(const std::vector<Node>& items) { return start(7).numbers(items).done(); }
  Node complement(Node item) { return start(8).number(item).done(); }
  Node lexeme(Node item) { return start(9).number(item).done(); }
  Node permutation(const std::vector<Item>& items, Node separator, bool ordered = false, uint32_t min = 0, uint32_t max = Unbounded) {
    start(10).byte(ordered).number(min).limit(max).number(separator).number(items.size());
    for (const auto& item : items) byte(static_cast<uint8_t>(item.required + 2 * item.many)).number(item.node);
    return done();
  }
  Node free(const std::vector<Trigger>& until, const std::vector<std::string>& except = {}) {
    start(11).number(until.size());
    for (const auto& trigger : until) {
      byte(!trigger.tokens.empty());
      if (trigger.tokens.empty()) string(trigger.text);
      else numbers(trigger.tokens);
    }
    number(except.size());
    for (const auto& text : except) string(text);
    return done();
  }
  Node token(const std::vector<uint32_t>& ids) { return start(12).numbers(ids).done(); }
  Node content(Node item) { return start(13).number(item).done(); }
  Node raw(const std::string& bytes) {
    nodes_ += bytes;
    return done();
  }

  void define(std::string_view name, Node node) { rules_.emplace_back(this->name(name), node); }

  std::string finish(std::string_view root) {
    const uint32_t rootName = name(root);
    IrWriter out;
    out.nodes_ = "MBG1";
    out.number(names_.size());
    for (const auto& text : names_) out.string(text);
    out.number(count_);
    out.nodes_ += nodes_;
    out.number(rules_.size());
    for (const auto& [ruleName, node] : rules_) out.number(ruleName).number(node);
    out.number(rootName);
    return out.nodes_;
  }

  /// A grammar of one rule.
  std::string only(Node node) {
    define("root", node);
    return finish("root");
  }

private:
  IrWriter& byte(uint8_t value) {
    nodes_.push_back(static_cast<char>(value));
    return *this;
  }
  IrWriter& start(uint8_t kind) { return byte(kind); }
  Node done() { return count_++; }
  IrWriter& number(uint64_t value) {
    for (; value > 0x7f; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    return byte(static_cast<uint8_t>(value));
  }
  IrWriter& limit(uint32_t value) { return number(value == Unbounded ? 0 : uint64_t{value} + 1); }
  IrWriter& numbers(const std::vector<uint32_t>& values) {
    number(values.size());
    for (const uint32_t value : values) number(value);
    return *this;
  }
  IrWriter& string(std::string_view value) {
    number(value.size());
    nodes_ += value;
    return *this;
  }
  uint32_t name(std::string_view name) {
    const auto known = std::find(names_.begin(), names_.end(), name);
    if (known != names_.end()) return static_cast<uint32_t>(known - names_.begin());
    names_.emplace_back(name);
    return static_cast<uint32_t>(names_.size() - 1);
  }

  std::string nodes_;
  uint32_t count_ = 0;
  std::vector<std::string> names_;
  std::vector<std::pair<uint32_t, uint32_t>> rules_;
};

inline std::span<const std::byte> irBytes(const std::string& text) { return std::as_bytes(std::span(text)); }

} // namespace mashbox::test
