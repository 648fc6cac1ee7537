#include "sample/logprobs.hpp"

#include "sample/logits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mashbox::sample {

Logprobs LogprobReader::read(std::span<const float> logits, int32_t token, uint32_t top) {
  Logprobs result{LeastLogprob, {}};
  if (logits.empty()) return result;
  blockMaxima(logits, maxima_);
  const float largest = logits[static_cast<size_t>(argmax(logits, maxima_))];
  weights_.resize(logits.size());
  const double total = softmaxWeights(logits, largest, 1, weights_, blockSums_);
  const double logTotal = std::log(total);
  const auto logprob = [&](float logit) {
    // ∞ − ∞ is no number: where the largest logit is ∞, those that equal it share the whole probability.
    const double value = total > 0 && logit == largest ? -logTotal : static_cast<double>(logit) - largest - logTotal;
    return value > LeastLogprob ? static_cast<float>(std::min(value, 0.0)) : LeastLogprob;
  };
  if (static_cast<size_t>(token) < logits.size()) result.chosen = logprob(logits[static_cast<size_t>(token)]);
  if (top == 0) return result;
  const size_t wanted = std::min<size_t>(top, logits.size());
  selectTopK(logits, maxima_, wanted, result.top, scratch_);
  constexpr float none = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; result.top.size() < wanted; ++i)
    if (!(logits[i] > none)) result.top.push_back({none, static_cast<int32_t>(i)});
  std::sort(result.top.begin(), result.top.end(), [](const Candidate& a, const Candidate& b) { return a.before(b); });
  for (auto& candidate : result.top) candidate.score = logprob(candidate.score);
  return result;
}

} // namespace mashbox::sample
