#pragma once

#include "sample/sampler.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::sample {

/// Log probabilities below this, and those of NaN logits, are given as this (OpenAI's number for "very unlikely"; JSON has no −∞).
inline constexpr float LeastLogprob = -9999;

/// Most alternatives that can be asked for.
inline constexpr uint32_t MostTopLogprobs = 20;

/// A drawn token's natural log probability and the most likely tokens with theirs, best first (lower ids first among equals).
struct Logprobs {
  float chosen;
  std::vector<Candidate> top; ///< scores are log probabilities
};

/// Log probabilities of the model's own distribution: the log softmax of its logits, before bias, penalties, temperature and
/// filters, as OpenAI and vLLM report them. What a sampler may draw does not show in them.
class LogprobReader {
public:
  Logprobs read(std::span<const float> logits, int32_t token, uint32_t top);

private:
  std::vector<float> maxima_, weights_, blockSums_;
  std::vector<Candidate> scratch_;
};

} // namespace mashbox::sample
