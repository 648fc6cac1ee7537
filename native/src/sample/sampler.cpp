#include "sample/sampler.hpp"

#include "sample/logits.hpp"
#include "sample/philox.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace mashbox::sample {
namespace {

/// The token at `u` of the way through the weights, u in [0, 1).
int32_t drawBlocks(std::span<const float> weights, std::span<const float> blockSums, double total, double u) {
  double rest = u * total;
  size_t last = 0;
  for (size_t block = 0; block < blockSums.size(); ++block) {
    if (rest >= blockSums[block]) {
      rest -= blockSums[block];
      continue;
    }
    const size_t end = std::min((block + 1) * ScoreBlock, weights.size());
    for (size_t i = block * ScoreBlock; i < end; ++i) {
      if (weights[i] == 0) continue;
      if (rest < weights[i]) return static_cast<int32_t>(i);
      rest -= weights[i];
      last = i;
    }
    return static_cast<int32_t>(last); // rounding used up the block
  }
  // Rounding used up every block: the last token with a weight.
  for (last = weights.size() - 1; last > 0 && weights[last] == 0;) --last;
  return static_cast<int32_t>(last);
}

int32_t drawCandidates(std::span<const Candidate> candidates, double u) {
  double total = 0;
  for (const auto& c : candidates) total += c.score;
  double rest = u * total;
  int32_t last = candidates.front().token;
  for (const auto& c : candidates) {
    if (c.score == 0) continue;
    if (rest < c.score) return c.token;
    rest -= c.score;
    last = c.token;
  }
  return last;
}

} // namespace

Sampler::Sampler(Sampling sampling) : sampling_(std::move(sampling)) {}

bool Sampler::adjusts() const {
  return sampling_.repetitionPenalty != 1 || sampling_.frequencyPenalty != 0 || sampling_.presencePenalty != 0 || !sampling_.logitBias.empty();
}

void Sampler::penalize(std::span<const int32_t> window) {
  counts_.resize(adjusted_.size());
  const auto known = [&](int32_t token) { return static_cast<uint32_t>(token) < adjusted_.size(); };
  for (const int32_t token : window)
    if (known(token)) ++counts_[static_cast<size_t>(token)];
  for (const int32_t token : window) {
    if (!known(token)) continue;
    const uint32_t count = std::exchange(counts_[static_cast<size_t>(token)], 0);
    if (count == 0) continue;
    float& logit = adjusted_[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / sampling_.repetitionPenalty : logit * sampling_.repetitionPenalty;
    logit -= static_cast<float>(count) * sampling_.frequencyPenalty + sampling_.presencePenalty;
  }
}

std::span<const float> Sampler::adjust(std::span<const float> logits, std::span<const int32_t> history, std::span<const int32_t> banned) {
  adjusted_.assign(logits.begin(), logits.end());
  const size_t window = sampling_.repetitionWindow == 0 ? history.size() : std::min<size_t>(sampling_.repetitionWindow, history.size());
  if (sampling_.repetitionPenalty != 1 || sampling_.frequencyPenalty != 0 || sampling_.presencePenalty != 0) penalize(history.last(window));
  for (const auto& [token, bias] : sampling_.logitBias)
    if (static_cast<uint32_t>(token) < adjusted_.size()) adjusted_[static_cast<size_t>(token)] += bias;
  for (const int32_t token : banned)
    if (static_cast<uint32_t>(token) < adjusted_.size()) adjusted_[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
  return adjusted_;
}

void Sampler::collect(float bound) {
  candidates_.clear();
  for (size_t block = 0; block < blockScores_.size(); ++block) {
    if (blockScores_[block] < bound) continue; // no weight exceeds the sum of its block
    const size_t end = std::min((block + 1) * ScoreBlock, weights_.size());
    for (size_t i = block * ScoreBlock; i < end; ++i)
      if (weights_[i] >= bound) candidates_.push_back({weights_[i], static_cast<int32_t>(i)});
  }
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> history, uint64_t index, std::span<const int32_t> banned, Choice choice) {
  if (logits.empty()) return 0;
  if (adjusts() || !banned.empty()) logits = adjust(logits, history, banned);

  blockMaxima(logits, blockScores_);
  const int32_t best = argmax(logits, blockScores_);
  const float largest = logits[static_cast<size_t>(best)];
  if (choice == Choice::Best || !(sampling_.temperature > 0) || sampling_.topK == 1 || !(largest > -std::numeric_limits<float>::infinity())) return best;

  const double u = uniform(sampling_.seed, index);
  const bool limited = sampling_.topK > 0 && sampling_.topK < logits.size();
  double total = 0;
  if (limited) {
    selectTopK(logits, blockScores_, sampling_.topK, candidates_, scratch_);
    weights_.resize(candidates_.size());
    std::transform(candidates_.begin(), candidates_.end(), weights_.begin(), [](const Candidate& c) { return c.score; });
    total = softmaxWeights(weights_, largest, sampling_.temperature, weights_, blockScores_);
    for (size_t i = 0; i < candidates_.size(); ++i) candidates_[i].score = weights_[i];
  } else {
    weights_.resize(logits.size());
    total = softmaxWeights(logits, largest, sampling_.temperature, weights_, blockScores_);
    if (!(sampling_.topP < 1) && !(sampling_.minP > 0)) return drawBlocks(weights_, blockScores_, total, u);
    // All tokens below (1 − p) · total / n together weigh less than (1 − p) · total, so the nucleus is complete without them; and
    // what min_p removes cannot have pushed anything out of the nucleus, because it comes last.
    const double smallest = sampling_.topP < 1 ? (1 - static_cast<double>(sampling_.topP)) * total / static_cast<double>(logits.size()) : 0;
    const float bound = std::max(static_cast<float>(smallest * 0.999), sampling_.minP);
    collect(bound);
  }
  if (sampling_.topP < 1) keepNucleus(candidates_, static_cast<double>(sampling_.topP) * total, scratch_);
  if (sampling_.minP > 0) std::erase_if(candidates_, [&](const Candidate& c) { return c.score < sampling_.minP; });
  if (candidates_.empty()) return best;
  return drawCandidates(candidates_, u);
}

} // namespace mashbox::sample
