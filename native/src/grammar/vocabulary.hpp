#pragma once

#include "grammar/merges.hpp"
#include "grammar/slices.hpp"
#include "grammar/trie.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mashbox::grammar {

/// What a token adds to the output.
struct TokenText {
  std::string bytes;
  bool text = true; ///< false: nothing that a grammar could match as text (control, unknown and unused tokens)
};

/// What there is to know about a model's tokens.
struct Tokens {
  std::vector<TokenText> texts;
  TokenMerges merges;
};

/// The tokens of a model as grammars see them. Immutable but for a cache of slices; any thread may use it.
class Vocabulary {
public:
  explicit Vocabulary(std::vector<TokenText> texts, const TokenMerges& merges = {});

  uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
  size_t maskWords() const { return (tokens_.size() + 63) / 64; }
  /// No bytes: the token is not text.
  std::string_view bytes(int32_t token) const { return tokens_[static_cast<size_t>(token)].bytes; }
  const Trie& trie() const { return *trie_; }
  const std::shared_ptr<const Trie>& sharedTrie() const { return trie_; }
  /// Another token with the same bytes as this one, or -1.
  int32_t twin(int32_t token) const { return twins_[static_cast<size_t>(token)]; }
  uint32_t longestToken() const { return longest_; } ///< in bytes

  /// Tokens that spell the bytes, as the model's tokenizer cuts them where that is known, else always the longest. They end early where no
  /// token goes on.
  std::vector<int32_t> cut(std::string_view bytes) const;

  std::shared_ptr<const Slice> slice(const CharacterSet& characters) const;
  std::shared_ptr<const Slice> slice(const CharacterSet& characters, const Slice::Source& source) const;

private:
  std::vector<int32_t> longestTokens(std::string_view bytes) const;

  std::vector<TokenText> tokens_;
  std::optional<Merges> merges_;
  std::vector<int32_t> twins_;
  std::vector<TokenShape> shapes_; ///< per token
  std::shared_ptr<const Trie> trie_;
  uint32_t longest_ = 1;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Slice>> slices_; ///< the one that was used last comes last
};

} // namespace mashbox::grammar
