#include "grammar/merges.hpp"

#include "grammar/vocabulary.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace mashbox::grammar {
namespace {

/// Of a character in UTF-8, by its first byte.
constexpr size_t LongestCharacter = 4;

struct Symbol {
  int32_t token;
  size_t previous, next; ///< places of its neighbours
};

constexpr size_t None = SIZE_MAX;
constexpr int32_t Gone = -1;

} // namespace

Merges::Merges(const TokenMerges& source, std::span<const TokenText> tokens) : joined_(source.merges.size()) {
  const auto textOf = [&](int32_t token) -> std::string_view {
    return token >= 0 && static_cast<size_t>(token) < tokens.size() ? std::string_view(tokens[static_cast<size_t>(token)].bytes) : std::string_view();
  };
  for (const int32_t token : source.symbols)
    if (const auto text = textOf(token); !text.empty() && text.size() <= LongestCharacter) symbols_.try_emplace(std::string(text), token);
  for (uint32_t rank = 0; rank < source.merges.size(); ++rank) {
    const auto& [left, right, token] = source.merges[rank];
    const auto first = textOf(left), second = textOf(right), both = textOf(token);
    if (first.empty() || second.empty() || both.size() != first.size() + second.size() || !both.starts_with(first) || !both.ends_with(second)) continue;
    joined_.insert(key(left, right), {rank, token});
  }
}

std::vector<int32_t> Merges::cut(std::string_view text) const {
  std::vector<Symbol> symbols;
  for (size_t from = 0; from < text.size();) {
    size_t size = std::min(LongestCharacter, text.size() - from);
    auto known = symbols_.end();
    for (; size > 0 && known == symbols_.end(); --size) known = symbols_.find(std::string(text.substr(from, size)));
    if (known == symbols_.end()) return {};
    symbols.push_back({known->second, symbols.size() - 1, symbols.size() + 1});
    from += size + 1;
  }
  if (symbols.empty()) return {};
  symbols.front().previous = symbols.back().next = None;

  // The best merge first, of equal ones the leftmost; what has changed since it was found is passed over.
  using Found = std::tuple<uint32_t, size_t, int32_t, int32_t>; // rank, place of the left token, both tokens
  std::priority_queue<Found, std::vector<Found>, std::greater<>> queue;
  const auto look = [&](size_t place) {
    if (place == None || symbols[place].next == None) return;
    const int32_t left = symbols[place].token, right = symbols[symbols[place].next].token;
    if (const Joined* joined = joined_.find(key(left, right))) queue.emplace(joined->rank, place, left, right);
  };
  for (size_t place = 0; place < symbols.size(); ++place) look(place);
  while (!queue.empty()) {
    const auto [rank, place, left, right] = queue.top();
    queue.pop();
    Symbol& symbol = symbols[place];
    if (symbol.token != left || symbol.next == None || symbols[symbol.next].token != right) continue;
    symbol.token = joined_.find(key(left, right))->token;
    symbols[symbol.next].token = Gone;
    symbol.next = symbols[symbol.next].next;
    if (symbol.next != None) symbols[symbol.next].previous = place;
    look(symbol.previous);
    look(place);
  }
  std::vector<int32_t> tokens;
  for (size_t place = 0; place != None; place = symbols[place].next) tokens.push_back(symbols[place].token);
  return tokens;
}

} // namespace mashbox::grammar
