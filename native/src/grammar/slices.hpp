#pragma once

#include "grammar/trie.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mashbox::grammar {

/// Some of the ASCII characters, and all others or none of them.
struct CharacterSet {
  std::array<uint64_t, 2> ascii{};
  bool others = false;

  void insert(unsigned byte) { ascii[byte / 64] |= uint64_t{1} << byte % 64; }
  bool contains(const CharacterSet& part) const {
    return (part.ascii[0] & ~ascii[0]) == 0 && (part.ascii[1] & ~ascii[1]) == 0 && (others || !part.others);
  }
  bool operator==(const CharacterSet&) const = default;
};

/// What a token consists of.
struct TokenShape {
  CharacterSet characters;
  uint16_t count = 0; ///< characters
  bool whole = false; ///< well-formed UTF-8
};

TokenShape shapeOf(std::string_view bytes);

/// Of the tokens with a common beginning (which may be empty): those that go on with whole characters of one set alone, by how many these
/// are, and a trie of all others. A state that treats every character of the set alike needs to walk only the latter.
class Slice {
public:
  /// Where the tokens are taken from: the nodes of a trie from `begin` to `end`, which lie below the bytes `prefix`.
  struct Source {
    std::shared_ptr<const Trie> trie;
    uint32_t begin, end;
    std::string prefix;
    bool operator==(const Source&) const = default;
  };

  /// `shapeOf` gives what a token of the trie, which holds one for each text, has behind the prefix; `twins` names the others.
  Slice(const CharacterSet& characters, Source source, const std::function<TokenShape(int32_t)>& shapeOf, std::span<const int32_t> twins);

  const CharacterSet& characters() const { return characters_; }
  const Source& source() const { return source_; }
  const std::shared_ptr<const Trie>& rest() const { return rest_; }
  uint32_t longest() const { return longest_; } ///< in characters

  /// Adds the tokens of at most `characters` characters to a mask.
  void addTo(std::span<uint64_t> mask, uint32_t characters) const;

private:
  static constexpr uint32_t Steps = 16;

  CharacterSet characters_;
  Source source_;
  std::shared_ptr<const Trie> rest_;
  uint32_t longest_ = 0;
  std::vector<uint64_t> all_;
  std::array<std::vector<uint64_t>, Steps> upTo_;       ///< of at most index + 1 characters
  std::vector<std::pair<uint16_t, int32_t>> longer_;    ///< the tokens of more than `Steps` characters, sorted
};

} // namespace mashbox::grammar
