#pragma once

#include "base/result.hpp"
#include "grammar/grammar.hpp"
#include "grammar/pushdown.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mashbox::grammar {

/// An output within a grammar. Copies are independent of each other. One thread at a time uses a matcher; matchers of one grammar may
/// be used by several.
class Matcher {
public:
  explicit Matcher(std::shared_ptr<const Grammar> grammar);

  /// Goes on by one token; false, and nothing has changed, where the grammar does not allow it.
  bool accept(int32_t token);
  /// Takes back the last `tokens` tokens, of those that were accepted.
  void rollback(size_t tokens);
  size_t length() const { return ends_.size() - 1; } ///< tokens accepted
  /// The output may end here.
  bool accepting() const;
  /// The output may not end here, and what comes next is neither content nor free text.
  bool syntactic() const;

  /// Sets the bits of exactly the tokens that `accept` would take; `mask` has `maskWords()` words. The error, which stays, is TooComplex:
  /// the grammar has used up its memory.
  Result<void> mask(std::span<uint64_t> mask);
  size_t maskWords() const { return grammar_->vocabulary().maskWords(); }
  const Vocabulary& vocabulary() const { return grammar_->vocabulary(); }

  /// What must come next: bytes that the grammar leaves no choice about, at most `most` of them. `complete`: after them the output ends.
  struct Forced {
    std::string bytes;
    bool complete = false;
  };
  Forced forced(size_t most) const;
  /// Tokens that spell what must come next. The last of them ends where no longer token could go on into what is free: that boundary is
  /// the model's to choose.
  std::vector<int32_t> forcedTokens() const;

private:
  std::span<const Thread> threads() const { return std::span(threads_).subspan(ends_.size() > 1 ? ends_[ends_.size() - 2] : 0); }

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<Frames> frames_; ///< shared by copies: it only grows
  std::vector<Thread> threads_;    ///< after every token, one after another
  std::vector<uint32_t> ends_;     ///< where each of these ends
};

} // namespace mashbox::grammar
