#pragma once

#include "base/text.hpp"
#include "grammar/ir.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mashbox::test {

/// Matches by trying everything, straight from the words of native/GRAMMAR.md: the places where a node that begins at one may end.
/// For grammars without tokens and left recursion.
class ReferenceMatcher {
public:
  ReferenceMatcher(const grammar::ir::Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {}

  bool matches() { return ends(grammar_.rules[grammar_.root].node, 0).contains(text_.size()); }

private:
  using Ends = std::set<size_t>;
  using NodeIndex = grammar::ir::NodeIndex;

  const Ends& ends(NodeIndex node, size_t at) {
    const auto [place, added] = known_.try_emplace({node, at});
    if (added) {
      Ends found = std::visit([&](const auto& n) { return find(n, at); }, grammar_.nodes[node]);
      known_[{node, at}] = std::move(found);
    }
    return known_[{node, at}];
  }

  Ends find(const grammar::ir::Text& n, size_t at) {
    return text_.substr(at).starts_with(n.value) ? Ends{at + n.value.size()} : Ends{};
  }

  Ends find(const grammar::ir::Class& n, size_t at) {
    for (size_t size = 1; size <= 4 && at + size <= text_.size(); ++size) {
      const std::string_view character = text_.substr(at, size);
      if (!isUtf8(character) || characters(character) != 1) continue;
      const uint32_t code = codePoint(character);
      const bool inside = std::any_of(n.ranges.begin(), n.ranges.end(), [&](const auto& range) { return code >= range.first && code <= range.second; });
      return inside != n.negated ? Ends{at + size} : Ends{};
    }
    return {};
  }

  Ends find(const grammar::ir::Sequence& n, size_t at) {
    Ends now{at};
    for (const NodeIndex item : n.items) now = after(now, item);
    return now;
  }

  Ends find(const grammar::ir::Choice& n, size_t at) {
    Ends all;
    for (const NodeIndex item : n.items) all.merge(Ends(ends(item, at)));
    return all;
  }

  Ends find(const grammar::ir::Repeat& n, size_t at) {
    Ends all, now{at};
    if (n.min == 0) all = now;
    // After as many rounds as there are bytes, and the required ones, nothing new can come.
    const uint64_t rounds = std::min<uint64_t>(n.max, uint64_t{n.min} + text_.size() + 1);
    for (uint64_t round = 1; round <= rounds && !now.empty(); ++round) {
      now = after(now, n.item);
      if (round >= n.min) all.insert(now.begin(), now.end());
    }
    return all;
  }

  Ends find(const grammar::ir::RuleRef& n, size_t at) { return ends(grammar_.rules[n.rule].node, at); }

  Ends find(const grammar::ir::And& n, size_t at) {
    Ends all = ends(n.items.front(), at);
    for (const NodeIndex item : n.items) {
      const Ends other = ends(item, at);
      std::erase_if(all, [&](size_t end) { return !other.contains(end); });
    }
    return all;
  }

  Ends find(const grammar::ir::Not& n, size_t at) {
    const Ends inside = ends(n.item, at);
    Ends all;
    for (size_t end = at; end <= text_.size(); ++end)
      if (isUtf8(text_.substr(at, end - at)) && !inside.contains(end)) all.insert(end);
    return all;
  }

  Ends find(const grammar::ir::Lexeme& n, size_t at) { return ends(n.item, at); }
  Ends find(const grammar::ir::Content& n, size_t at) { return ends(n.item, at); }

  Ends find(const grammar::ir::Permutation& n, size_t at) {
    Ends all;
    std::set<std::pair<std::vector<uint32_t>, size_t>> seen;
    place(n, {}, at, all, seen);
    return all;
  }

  void place(const grammar::ir::Permutation& n, std::vector<uint32_t> used, size_t at, Ends& all, std::set<std::pair<std::vector<uint32_t>, size_t>>& seen) {
    if (!seen.insert({used, at}).second) return;
    const auto has = [&](uint32_t i) { return std::find(used.begin(), used.end(), i) != used.end(); };
    bool complete = used.size() >= n.min;
    for (uint32_t i = 0; i < n.items.size(); ++i) complete &= !n.items[i].required || has(i);
    if (complete) all.insert(at);
    if (used.size() >= n.max) return;
    for (uint32_t i = 0; i < n.items.size(); ++i) {
      if (has(i) && !n.items[i].many) continue;
      if (n.ordered && !used.empty() && i < used.back()) continue;
      auto more = used;
      more.push_back(i);
      for (const size_t begin : used.empty() ? Ends{at} : Ends(ends(n.separator, at)))
        for (const size_t end : Ends(ends(n.items[i].node, begin))) place(n, more, end, all, seen);
    }
  }

  Ends find(const grammar::ir::Free& n, size_t at) {
    Ends all;
    for (size_t end = at; end <= text_.size(); ++end) {
      const std::string_view part = text_.substr(at, end - at);
      if (!isUtf8(part)) continue;
      const auto inside = [&](const std::string& s) { return part.find(s) != std::string_view::npos; };
      if (std::any_of(n.except.begin(), n.except.end(), inside)) continue;
      const bool ends = std::any_of(n.until.begin(), n.until.end(), [&](const auto& s) { return part.ends_with(s); });
      const std::string_view before = part.substr(0, part.empty() ? 0 : part.size() - 1);
      const bool earlier = std::any_of(n.until.begin(), n.until.end(), [&](const auto& s) { return before.find(s) != std::string_view::npos; });
      if (n.until.empty() || (ends && !earlier)) all.insert(end);
    }
    return all;
  }

  Ends find(const grammar::ir::Token&, size_t) { return {}; }

  Ends after(const Ends& places, NodeIndex item) {
    Ends all;
    for (const size_t place : places) all.merge(Ends(ends(item, place)));
    return all;
  }

  static size_t characters(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
  }
  static uint32_t codePoint(std::string_view character) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(character[i])); };
    if (character.size() == 1) return byte(0);
    uint32_t code = byte(0) & (0xffu >> (character.size() + 1));
    for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
    return code;
  }

  const grammar::ir::Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<NodeIndex, size_t>, Ends> known_;
};

} // namespace mashbox::test
