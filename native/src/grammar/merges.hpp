#pragma once

#include "base/flat_map.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mashbox::grammar {

struct TokenText;

/// How a model's tokenizer joins tokens (byte pair encoding).
struct TokenMerges {
  struct Merge {
    int32_t left, right, token;
  };
  std::vector<int32_t> symbols; ///< what a text consists of before anything is joined: of equal texts the first
  std::vector<Merge> merges;    ///< the one that is done first comes first
};

/// Cuts text as a model's tokenizer does, but for its splits before merging, which merges hardly ever cross.
class Merges {
public:
  /// Merges that do not spell what they join are left out; of several for the same two tokens the first counts.
  Merges(const TokenMerges& source, std::span<const TokenText> tokens);

  /// Tokens that spell `text`; none where a character is not among the symbols. Takes O(n log n).
  std::vector<int32_t> cut(std::string_view text) const;

private:
  struct Joined {
    uint32_t rank;
    int32_t token;
  };
  static uint64_t key(int32_t left, int32_t right) { return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right); }

  std::unordered_map<std::string, int32_t> symbols_;
  FlatMap<uint64_t, Joined> joined_;
};

} // namespace mashbox::grammar
