#include "grammar/builder.hpp"

#include "base/text.hpp"
#include "grammar/characters.hpp"
#include "grammar/structure.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <type_traits>

namespace mashbox::grammar {
namespace {

using ir::NodeIndex;

constexpr Term Unbuilt = UINT32_MAX;
/// A rule of at most as many nodes stands in place of its references; a lexeme, of what it matches.
constexpr uint32_t SmallRule = 24, SmallLexeme = 3;
constexpr size_t MostTriggerBytes = 2048, MostUnordered = 2048;
constexpr uint32_t MostNestedCalls = 500;

template <class... Cases> struct Overloaded : Cases... {
  using Cases::operator()...;
};

class Builder {
public:
  Builder(const ir::Grammar& grammar, TermTable& terms, Automaton& automaton, Budget& budget)
      : grammar_(grammar), terms_(terms), automaton_(automaton), budget_(budget), structure_(analyse(grammar)), termOf_(grammar.nodes.size(), Unbuilt),
        regular_(grammar.nodes.size(), Unbuilt), leaves_(grammar.nodes.size(), Unbuilt), nullable_(grammar.nodes.size()), productive_(grammar.nodes.size()) {}

  Result<Rules> run() {
    for (NodeIndex node = 0; node < grammar_.nodes.size(); ++node)
      if (auto checked = check(node); !checked) return checked.error();
    buildLeaves();
    automaton_.divideBytes();
    rules_.bodies.resize(grammar_.rules.size(), Nothing);
    for (const auto& group : structure_.groups) {
      if (auto built = buildGroup(group); !built) return built.error();
      if (budget_.exceeded()) return tooComplex();
    }
    for (uint32_t rule = 0; rule < grammar_.rules.size(); ++rule) rules_.bodies[rule] = termOf_[grammar_.rules[rule].node];
    rules_.root = grammar_.root;
    rules_.named = grammar_.rules.size();
    if (auto rewritten = rewriteLeftRecursion(); !rewritten) return rewritten.error();
    if (budget_.exceeded()) return tooComplex();
    if (rules_.bodies[grammar_.root] == Nothing)
      return Error{ErrorKind::Invalid, "grammar: rule " + quoted(grammar_.root) + ": it matches no text at all", "grammar"};
    return std::move(rules_);
  }

private:
  Error tooComplex() const { return {ErrorKind::TooComplex, "grammar: " + budget_.what(), "grammar"}; }
  std::string quoted(uint32_t rule) const { return "\"" + escaped(grammar_.rules[rule].name) + "\""; }
  Error nodeError(ErrorKind kind, NodeIndex node, const std::string& message) const {
    std::string where = "node " + std::to_string(node);
    for (uint32_t rule = 0; rule < grammar_.rules.size(); ++rule)
      if (grammar_.rules[rule].node == node) where = "rule " + quoted(rule);
    return {kind, "grammar: " + where + ": " + message, "grammar"};
  }

  Result<void> check(NodeIndex node) const {
    const ir::Node& n = grammar_.nodes[node];
    const auto allRegular = [&] {
      const auto items = ir::children(n);
      return std::all_of(items.begin(), items.end(), [&](NodeIndex item) { return structure_.regular[item]; });
    };
    const bool logic = std::holds_alternative<ir::And>(n) || std::holds_alternative<ir::Not>(n) || std::holds_alternative<ir::Lexeme>(n) ||
      std::holds_alternative<ir::Content>(n);
    if (logic && !allRegular())
      return nodeError(ErrorKind::Unsupported, node, "`and`, `not`, `lexeme` and `content` take no recursive rules and no tokens");
    if (const auto* permutation = std::get_if<ir::Permutation>(&n); permutation != nullptr && !permutation->ordered && permutation->items.size() > MostUnordered)
      return nodeError(ErrorKind::TooComplex, node, "it has more than " + std::to_string(MostUnordered) + " items in any order");
    if (const auto* free = std::get_if<ir::Free>(&n)) {
      size_t bytes = 0;
      for (const auto& text : free->until) bytes += text.size();
      for (const auto& text : free->except) bytes += text.size();
      if (bytes > MostTriggerBytes)
        return nodeError(ErrorKind::TooComplex, node, "its triggers have more than " + std::to_string(MostTriggerBytes) + " bytes");
    }
    return {};
  }

  /// All that brings bytes into the grammar, before the bytes are divided into classes.
  void buildLeaves() {
    anyText_ = anyText(terms_);
    for (NodeIndex node = 0; node < grammar_.nodes.size(); ++node) {
      if (const auto* text = std::get_if<ir::Text>(&grammar_.nodes[node])) leaves_[node] = terms_.text(text->value);
      if (const auto* set = std::get_if<ir::Class>(&grammar_.nodes[node])) leaves_[node] = classTerm(*set);
      if (const auto* free = std::get_if<ir::Free>(&grammar_.nodes[node])) leaves_[node] = freeTerm(*free);
      if (const auto* token = std::get_if<ir::Token>(&grammar_.nodes[node])) leaves_[node] = terms_.token(token->ids);
      budget_.tick();
    }
  }

  Term classTerm(const ir::Class& set) {
    const auto [place, added] = classes_.try_emplace({set.negated, set.ranges}, Nothing);
    if (added) place->second = characters(terms_, set.ranges, set.negated);
    return place->second;
  }

  Term freeTerm(const ir::Free& free) {
    const int64_t tokens = free.untilTokens.empty() ? -1 : int64_t{terms_[terms_.token(free.untilTokens)].a};
    const uint32_t text = terms_.addFreeText(FreeText(free.until, free.except, tokens));
    return terms_.free(text, {0, 0});
  }

  Result<void> buildGroup(const std::vector<NodeIndex>& group) {
    if (!structure_.cyclic[group.front()]) {
      const NodeIndex node = group.front();
      nullable_[node] = isNullable(node);
      if (auto items = checkItems(node); !items) return items;
      termOf_[node] = budget_.exceeded() ? Nothing : automaton_.trim(build(node));
      productive_[node] = termOf_[node] != Nothing;
      return {};
    }
    settle(group, nullable_, [&](NodeIndex node) { return isNullable(node); });
    settle(group, productive_, [&](NodeIndex node) { return isProductive(node); });
    for (const NodeIndex node : group) {
      if (budget_.exceeded()) return {};
      if (auto items = checkItems(node); !items) return items;
      termOf_[node] = productive_[node] ? automaton_.trim(build(node)) : Nothing;
    }
    return {};
  }

  /// The least fixed point of a property of the nodes that lead to each other.
  void settle(const std::vector<NodeIndex>& group, std::vector<bool>& property, const std::function<bool(NodeIndex)>& holds) {
    for (bool changed = true; changed && !budget_.exceeded();) {
      changed = false;
      for (const NodeIndex node : group) {
        budget_.tick();
        if (property[node] || !holds(node)) continue;
        property[node] = changed = true;
      }
    }
  }

  Result<void> checkItems(NodeIndex node) const {
    const auto* permutation = std::get_if<ir::Permutation>(&grammar_.nodes[node]);
    if (permutation == nullptr) return {};
    for (const auto& item : permutation->items)
      if (nullable_[item.node]) return nodeError(ErrorKind::Invalid, node, "an item of the permutation matches the empty text");
    return {};
  }

  bool isNullable(NodeIndex node) const {
    const auto nullable = [&](NodeIndex item) { return bool{nullable_[item]}; };
    return std::visit(Overloaded{
      [](const ir::Text& n) { return n.value.empty(); },
      [](const ir::Class&) { return false; },
      [&](const ir::Sequence& n) { return std::all_of(n.items.begin(), n.items.end(), nullable); },
      [&](const ir::Choice& n) { return std::any_of(n.items.begin(), n.items.end(), nullable); },
      [&](const ir::Repeat& n) { return n.min == 0 || nullable(n.item); },
      [&](const ir::RuleRef& n) { return nullable(grammar_.rules[n.rule].node); },
      [&](const ir::And& n) { return std::all_of(n.items.begin(), n.items.end(), nullable); },
      [&](const ir::Not& n) { return !nullable(n.item); },
      [&](const ir::Lexeme& n) { return nullable(n.item); },
      [&](const ir::Content& n) { return nullable(n.item); },
      [](const ir::Permutation& n) {
        return n.min == 0 && std::none_of(n.items.begin(), n.items.end(), [](const auto& item) { return item.required; });
      },
      [](const ir::Free& n) { return n.until.empty() && n.untilTokens.empty(); },
      [](const ir::Token&) { return false; },
    }, grammar_.nodes[node]);
  }

  /// Of a node in a cycle; others are productive when their term is not `Nothing`.
  bool isProductive(NodeIndex node) const {
    const auto productive = [&](NodeIndex item) { return bool{productive_[item]}; };
    return std::visit(Overloaded{
      [&](const ir::Sequence& n) { return std::all_of(n.items.begin(), n.items.end(), productive); },
      [&](const ir::Choice& n) { return std::any_of(n.items.begin(), n.items.end(), productive); },
      [&](const ir::Repeat& n) { return n.min == 0 || productive(n.item); },
      [&](const ir::RuleRef& n) { return productive(grammar_.rules[n.rule].node); },
      [&](const ir::Permutation& n) { return isProductive(n); },
      [](const auto&) { return false; }, // and, not and leaves are in no cycle
    }, grammar_.nodes[node]);
  }

  bool isProductive(const ir::Permutation& n) const {
    uint32_t required = 0, possible = 0;
    bool endless = false;
    for (const auto& item : n.items) {
      required += item.required;
      if (item.required && !productive_[item.node]) return false;
      possible += productive_[item.node];
      endless |= productive_[item.node] && item.many;
    }
    const uint32_t needed = std::max(required, n.min);
    return needed <= n.max && (endless || needed <= possible) && (needed <= 1 || productive_[n.separator]);
  }

  Term build(NodeIndex node) {
    if (leaves_[node] != Unbuilt) return leaves_[node];
    return std::visit(Overloaded{
      [&](const ir::RuleRef& n) { return reference(n.rule); },
      [&](const ir::Lexeme& n) { return lexeme(n.item, regular(n.item)); },
      [&](const ir::Content& n) { return lexeme(n.item, terms_.content(regular(n.item))); },
      [&](const ir::And&) { return regular(node); },
      [&](const ir::Not&) { return regular(node); },
      [&](const auto& n) { return combine(n, [&](NodeIndex item) { return termOf_[item]; }); },
    }, grammar_.nodes[node]);
  }

  Term reference(uint32_t rule) {
    const NodeIndex body = grammar_.rules[rule].node;
    if (!structure_.cyclic[body] && (termOf_[body] == Nothing || structure_.size[body] <= SmallRule)) return termOf_[body];
    return productive_[body] ? terms_.call(rule, nullable_[body]) : Nothing;
  }

  Term lexeme(NodeIndex item, Term language) {
    const Term body = automaton_.trim(language);
    if (body == Nothing || structure_.size[item] <= SmallLexeme) return body;
    const auto [place, added] = lexemes_.try_emplace(body, static_cast<uint32_t>(rules_.bodies.size()));
    if (added) rules_.bodies.push_back(body);
    return terms_.call(place->second, terms_[body].nullable);
  }

  /// The term of a regular node with every rule written out, children first.
  Term regular(NodeIndex root) {
    std::vector<NodeIndex> pending{root};
    while (!pending.empty() && !budget_.exceeded()) {
      const NodeIndex node = pending.back();
      const auto* reference = std::get_if<ir::RuleRef>(&grammar_.nodes[node]);
      const auto items = reference != nullptr ? std::vector<NodeIndex>{grammar_.rules[reference->rule].node} : ir::children(grammar_.nodes[node]);
      const size_t before = pending.size();
      for (const NodeIndex item : items)
        if (regular_[item] == Unbuilt) pending.push_back(item);
      if (pending.size() > before) continue;
      pending.pop_back();
      if (regular_[node] == Unbuilt) regular_[node] = reference != nullptr ? regular_[items.front()] : buildRegular(node);
    }
    return budget_.exceeded() ? Nothing : regular_[root];
  }

  Term buildRegular(NodeIndex node) {
    if (leaves_[node] != Unbuilt) return leaves_[node];
    const auto term = [&](NodeIndex item) { return regular_[item]; };
    return std::visit(Overloaded{
      [&](const ir::And& n) {
        std::vector<Term> items;
        for (const NodeIndex item : n.items) items.push_back(term(item));
        return terms_.both(std::move(items));
      },
      [&](const ir::Not& n) { return terms_.both({anyText_, terms_.complement(term(n.item))}); },
      [&](const ir::Lexeme& n) { return term(n.item); },
      [&](const ir::Content& n) { return term(n.item); },
      [&](const auto& n) { return combine(n, term); },
    }, grammar_.nodes[node]);
  }

  template <class Node, class TermOf> Term combine(const Node& n, const TermOf& term) {
    if constexpr (std::is_same_v<Node, ir::Sequence>) {
      Term result = Epsilon;
      for (size_t i = n.items.size(); i-- > 0;) result = terms_.sequence(term(n.items[i]), result);
      return result;
    } else if constexpr (std::is_same_v<Node, ir::Choice>) {
      return choice(n, term);
    } else if constexpr (std::is_same_v<Node, ir::Repeat>) {
      return terms_.repeat(term(n.item), n.min, n.max);
    } else if constexpr (std::is_same_v<Node, ir::Permutation>) {
      return permutation(n, term);
    } else {
      return Nothing; // leaves and logic are built elsewhere
    }
  }

  template <class TermOf> Term choice(const ir::Choice& n, const TermOf& term) {
    constexpr size_t fewWords = 8;
    std::vector<std::string> words;
    std::vector<Term> items;
    for (const NodeIndex item : n.items) {
      if (const auto* text = std::get_if<ir::Text>(&grammar_.nodes[item])) words.push_back(text->value);
      else items.push_back(term(item));
    }
    if (words.size() >= fewWords) items.push_back(terms_.words(std::move(words)));
    else for (const auto& word : words) items.push_back(terms_.text(word));
    return terms_.choice(std::move(items));
  }

  template <class TermOf> Term permutation(const ir::Permutation& n, const TermOf& term) {
    const Term separator = term(n.separator);
    Permutation result{{}, separator, n.ordered, n.min, n.max, terms_[separator].symbols, terms_[separator].depth};
    // Without a separator at most one item can come.
    if (separator == Nothing) result.max = std::min(result.max, 1u);
    for (const auto& item : n.items) {
      const Term body = term(item.node);
      if (body == Nothing && item.required) return Nothing;
      if (body == Nothing) continue;
      result.items.push_back({body, item.required, item.many});
      result.symbols |= terms_[body].symbols;
      result.depth = std::max(result.depth, terms_[body].depth);
    }
    ++result.depth;
    const uint32_t index = terms_.permutations().add(std::move(result));
    return terms_.items(index, terms_.permutations().start(index), false);
  }

  Result<void> rewriteLeftRecursion() {
    for (uint32_t rule = 0; rule < grammar_.rules.size(); ++rule) {
      if (budget_.exceeded()) return {};
      const Term body = rules_.bodies[rule];
      Term rest = Nothing;
      for (const Symbol& symbol : automaton_.symbols(body))
        if (symbol.kind == Symbol::Kind::Call && symbol.index == rule) rest = symbol.rest;
      if (rest == Nothing) continue;
      const Term others = without(body, rule);
      if (others == Unbuilt) return leftRecursive(rule);
      rules_.bodies[rule] = terms_.sequence(others, terms_.repeat(rest, 0, Unbounded));
    }
    return checkLeftRecursion();
  }

  Error leftRecursive(uint32_t rule) const {
    return {ErrorKind::Unsupported, "grammar: rule " + quoted(rule) + ": it is left-recursive through other rules or optional parts", "grammar"};
  }

  /// What `term` matches without beginning with a call of the rule; `Unbuilt` where that cannot be taken apart.
  Term without(Term term, uint32_t rule) {
    const TermNode node = terms_[term];
    const auto begins = [&](Term part) {
      const auto symbols = automaton_.symbols(part);
      return std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.kind == Symbol::Kind::Call && s.index == rule; });
    };
    if (!begins(term)) return term;
    if (node.op == Op::Call) return Nothing;
    if (node.op == Op::Sequence) {
      if (terms_[node.a].op == Op::Call && terms_[node.a].a == rule) return Nothing;
      if (terms_[node.a].nullable) return Unbuilt;
      const Term head = without(node.a, rule);
      return head == Unbuilt ? Unbuilt : terms_.sequence(head, node.b);
    }
    if (node.op != Op::Choice) return Unbuilt;
    std::vector<Term> items(terms_.children(term).begin(), terms_.children(term).end());
    for (Term& item : items)
      if ((item = without(item, rule)) == Unbuilt) return Unbuilt;
    return terms_.choice(std::move(items));
  }

  /// A rule must not begin with a call that leads back to it.
  Result<void> checkLeftRecursion() {
    enum : uint8_t { New, Open, Done };
    std::vector<uint8_t> state(rules_.bodies.size(), New);
    std::vector<uint32_t> depth(rules_.bodies.size(), 1);
    struct Visit {
      uint32_t rule;
      std::vector<uint32_t> next;
    };
    for (uint32_t root = 0; root < state.size(); ++root) {
      if (state[root] != New) continue;
      std::vector<Visit> visits;
      const auto enter = [&](uint32_t rule) {
        state[rule] = Open;
        Visit visit{rule, {}};
        for (const Symbol& symbol : automaton_.symbols(rules_.bodies[rule]))
          if (symbol.kind == Symbol::Kind::Call) visit.next.push_back(symbol.index);
        visits.push_back(std::move(visit));
      };
      enter(root);
      while (!visits.empty() && !budget_.exceeded()) {
        if (visits.back().next.empty()) {
          const uint32_t rule = visits.back().rule;
          state[rule] = Done;
          visits.pop_back();
          if (!visits.empty()) depth[visits.back().rule] = std::max(depth[visits.back().rule], depth[rule] + 1);
          if (visits.size() > MostNestedCalls || depth[rule] > MostNestedCalls)
            budget_.exceed("more than " + std::to_string(MostNestedCalls) + " rules begin with one another");
          continue;
        }
        const uint32_t next = visits.back().next.back();
        visits.back().next.pop_back();
        if (state[next] == Open) return leftRecursive(next);
        depth[visits.back().rule] = std::max(depth[visits.back().rule], depth[next] + 1);
        if (state[next] == New) enter(next);
      }
    }
    return {};
  }

  const ir::Grammar& grammar_;
  TermTable& terms_;
  Automaton& automaton_;
  Budget& budget_;
  Structure structure_;
  Rules rules_;
  Term anyText_ = Nothing;
  std::vector<Term> termOf_, regular_, leaves_;
  std::vector<bool> nullable_, productive_;
  std::map<std::pair<bool, std::vector<std::pair<uint32_t, uint32_t>>>, Term> classes_;
  std::map<Term, uint32_t> lexemes_;
};

} // namespace

Result<Rules> build(const ir::Grammar& grammar, TermTable& terms, Automaton& automaton, Budget& budget) {
  return Builder(grammar, terms, automaton, budget).run();
}

} // namespace mashbox::grammar
