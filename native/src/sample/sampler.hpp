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
  std::vector<std::pair<int32_t, float>> logitBias{};
};

/// A token with what it is ranked by: a logit, or a weight (an unnormalized probability whose largest is 1).
struct Candidate {
  float score;
  int32_t token;

  /// The order of every filter: higher scores first, lower ids among equals.
  bool before(const Candidate& other) const { return score > other.score || (score == other.score && token < other.token); }
};

/// How one token is chosen: as the sampling says, or as it would be at temperature 0.
enum class Choice : uint8_t { Drawn, Best };

/// Draws tokens: repetition penalty → frequency and presence penalty → logit bias → top_k → temperature → top_p → min_p → draw.
/// NaN logits count as −∞. A filter's survivors are drawn from in the order of their ids.
class Sampler {
public:
  explicit Sampler(Sampling sampling);

  /// Token number `index` of an output whose prompt and earlier tokens are `history`. The random number is a function of
  /// (seed, index) alone. `banned` tokens are not drawn while any other has a finite logit.
  int32_t sample(std::span<const float> logits, std::span<const int32_t> history, uint64_t index, std::span<const int32_t> banned = {},
                 Choice choice = Choice::Drawn);

private:
  bool adjusts() const;
  std::span<const float> adjust(std::span<const float> logits, std::span<const int32_t> history, std::span<const int32_t> banned);
  void penalize(std::span<const int32_t> window);
  void collect(float bound); ///< the tokens whose weight is at least `bound` become the candidates

  Sampling sampling_;
  std::vector<float> adjusted_;
  std::vector<uint32_t> counts_;
  std::vector<float> weights_;
  std::vector<float> blockScores_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> scratch_;
};

} // namespace mashbox::sample
