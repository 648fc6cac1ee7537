#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mashbox::sample {

struct Sampling {
  float temperature = 0;        ///< 0: greedy
  uint32_t topK = 0;            ///< 0: off
  float topP = 1;               ///< 1: off
  float minP = 0;               ///< 0: off
  float repetitionPenalty = 1;  ///< divides positive and multiplies negative logits of tokens in the window
  float frequencyPenalty = 0;
  float presencePenalty = 0;
  uint32_t repetitionWindow = 256; ///< last tokens (prompt and output) that the penalties look at; 0: all of them
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logitBias;
};

/// Draws token number `index` of an output: repetition penalty → frequency and presence penalty → logit bias → top_k → temperature
/// → top_p → min_p → draw. The random number is a function of (seed, index) alone. `logits` is scratch: it is changed.
/// `history` holds prompt and output so far.
class Sampler {
public:
  explicit Sampler(Sampling sampling);
  int32_t sample(std::span<float> logits, std::span<const int32_t> history, uint64_t index);

private:
  Sampling sampling_;
  std::vector<std::pair<float, int32_t>> candidates_;
};

/// Uniform in [0, 1), a counter-based function of its arguments (Philox 4x32-10).
double uniform(uint64_t seed, uint64_t index);

} // namespace mashbox::sample
