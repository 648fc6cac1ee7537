#pragma once

#include "sample/sampler.hpp"
#include "sched/passage_limit.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mashbox::sched {

struct Request {
  uint32_t id;
  std::vector<int32_t> tokens;     ///< the prompt, at least one token
  uint32_t maxTokens;              ///< at least 1
  sample::Sampling sampling;
  std::vector<int32_t> stopTokens; ///< end the output; not reported as tokens
  uint32_t minTokens = 0;          ///< no stop token is drawn before this many tokens
  /// Alternatives to report with every token's log probability (at most `sample::MostTopLogprobs`); none: no log probabilities.
  std::optional<uint32_t> topLogprobs{};
  std::optional<PassageLimit> limit{}; ///< of the reasoning
  /// Bytes of the grammar that the output keeps to (native/GRAMMAR.md); empty: none.
  std::vector<std::byte> grammar{};
  /// What the grammar leaves no choice about is put into the output without being drawn, unless log probabilities are asked for.
  bool jumpAhead = true;
  /// What is neither content nor free text in the grammar is drawn as at temperature 0.
  bool greedySyntax = false;
};

} // namespace mashbox::sched
