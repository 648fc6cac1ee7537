#include "grammar/structure.hpp"

#include <algorithm>

namespace mashbox::grammar {
namespace {

using ir::NodeIndex;

std::vector<NodeIndex> successors(const ir::Grammar& grammar, NodeIndex node) {
  if (const auto* reference = std::get_if<ir::RuleRef>(&grammar.nodes[node])) return {grammar.rules[reference->rule].node};
  return ir::children(grammar.nodes[node]);
}

/// Tarjan's algorithm with a stack of its own: grammars may be deep.
class Grouping {
public:
  explicit Grouping(const ir::Grammar& grammar) : grammar_(grammar), order_(grammar.nodes.size(), Unseen), low_(grammar.nodes.size()), open_(grammar.nodes.size()) {}

  std::vector<std::vector<NodeIndex>> run() {
    for (NodeIndex node = 0; node < order_.size(); ++node)
      if (order_[node] == Unseen) visit(node);
    return std::move(groups_);
  }

private:
  static constexpr uint32_t Unseen = UINT32_MAX;
  struct Visit {
    NodeIndex node;
    std::vector<NodeIndex> next;
    size_t done = 0;
  };

  void enter(NodeIndex node) {
    order_[node] = low_[node] = count_++;
    open_[node] = true;
    stack_.push_back(node);
    visits_.push_back({node, successors(grammar_, node)});
  }

  void visit(NodeIndex root) {
    enter(root);
    while (!visits_.empty()) {
      Visit& visit = visits_.back();
      if (visit.done < visit.next.size()) {
        const NodeIndex next = visit.next[visit.done++];
        if (order_[next] == Unseen) enter(next);
        else if (open_[next]) low_[visit.node] = std::min(low_[visit.node], order_[next]);
        continue;
      }
      const NodeIndex node = visit.node;
      visits_.pop_back();
      if (!visits_.empty()) low_[visits_.back().node] = std::min(low_[visits_.back().node], low_[node]);
      if (low_[node] == order_[node]) close(node);
    }
  }

  void close(NodeIndex node) {
    std::vector<NodeIndex> group;
    do {
      group.push_back(stack_.back());
      open_[stack_.back()] = false;
      stack_.pop_back();
    } while (group.back() != node);
    std::sort(group.begin(), group.end());
    groups_.push_back(std::move(group));
  }

  const ir::Grammar& grammar_;
  std::vector<uint32_t> order_, low_;
  std::vector<bool> open_;
  std::vector<NodeIndex> stack_;
  std::vector<Visit> visits_;
  std::vector<std::vector<NodeIndex>> groups_;
  uint32_t count_ = 0;
};

bool usesTokens(const ir::Node& node) {
  const auto* free = std::get_if<ir::Free>(&node);
  return std::holds_alternative<ir::Token>(node) || (free != nullptr && !free->untilTokens.empty());
}

} // namespace

Structure analyse(const ir::Grammar& grammar) {
  const size_t count = grammar.nodes.size();
  Structure result{Grouping(grammar).run(), std::vector<bool>(count), std::vector<bool>(count), std::vector<uint32_t>(count, 1)};
  for (const auto& group : result.groups) {
    for (const NodeIndex node : group) {
      const auto next = successors(grammar, node);
      result.cyclic[node] = group.size() > 1 || std::find(next.begin(), next.end(), node) != next.end();
    }
    for (const NodeIndex node : group) {
      if (result.cyclic[node]) continue;
      result.regular[node] = !usesTokens(grammar.nodes[node]);
      uint64_t size = 1;
      for (const NodeIndex next : successors(grammar, node)) {
        result.regular[node] = result.regular[node] && result.regular[next];
        size += result.cyclic[next] ? 1 : result.size[next];
      }
      result.size[node] = static_cast<uint32_t>(std::min<uint64_t>(size, UINT32_MAX));
    }
  }
  return result;
}

} // namespace mashbox::grammar
