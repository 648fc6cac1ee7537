#pragma once

#include "base/result.hpp"
#include "grammar/vocabulary.hpp"
#include "kv/block_pool.hpp"
#include "model/model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::sched {

/// What the scheduler needs of a model: sequences in, logits out. One thread uses it.
class Decoder {
public:
  virtual ~Decoder() = default;
  virtual uint32_t vocabularySize() const = 0; ///< logits per row
  virtual uint32_t knownTokens() const = 0;    ///< tokens of a segment are below it; at most `vocabularySize`
  virtual uint32_t contextLength() const = 0;  ///< most tokens of one sequence, prompt and output
  virtual uint32_t slots() const = 0;
  virtual uint32_t batchTokens() const = 0;    ///< most rows of one `forward`
  virtual kv::BlockPool& pool() = 0;
  /// What each of the `knownTokens()` tokens adds to the output. Other threads may call it.
  virtual Result<std::vector<grammar::TokenText>> tokenTexts() const {
    return Error{ErrorKind::Unsupported, "the texts of this model's tokens are not known", "grammar"};
  }
  /// How its tokenizer joins them, where that is known. Other threads may call it.
  virtual grammar::TokenMerges tokenMerges() const { return {}; }

  /// Runs all segments as one batch and advances their sequences, whose blocks the caller has reserved. Returns one row of logits
  /// per segment that wants them, in order, valid until the next call.
  virtual Result<std::span<const float>> forward(std::span<const model::Segment> segments) = 0;
};

} // namespace mashbox::sched
