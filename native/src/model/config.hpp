#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace mashbox::gguf {
class File;
}

namespace mashbox::model {

/// Which two values of a head turn together: `Adjacent` (2i, 2i+1), GGML's NORM; `Halves` (i, i + dims/2), GGML's NEOX.
enum class RopePairing { Adjacent, Halves };

enum class RopeScaling { None, Linear, Yarn };

/// Rotary position embedding. Pair i of the first `dims` values of a head turns by
/// position · base^(−2i/dims) / factor_i, where factor_i comes from `rope_freqs.weight` or is 1.
struct Rope {
  RopePairing pairing = RopePairing::Adjacent;
  uint32_t dims = 0;
  double base = 10000;
  RopeScaling scaling = RopeScaling::None;
  double factor = 1;              ///< linear and YaRN: how many times the context was stretched
  double originalContext = 0;     ///< YaRN
  double betaFast = 32, betaSlow = 1;
  double attentionFactor = 1;     ///< YaRN: multiplies the magnitude (0.1 ln factor + 1)
};

/// What the forward program needs to know of a model: GGUF keys as numbers and flags.
struct Config {
  std::string architecture;
  uint32_t layers = 0;
  uint32_t width = 0;         ///< of the residual stream
  uint32_t heads = 0;         ///< query heads
  uint32_t kvHeads = 0;       ///< divides `heads`
  uint32_t keyLength = 0;     ///< of one head of Q and K
  uint32_t valueLength = 0;   ///< of one head of V
  uint32_t feedForward = 0;
  uint32_t vocabulary = 0;    ///< logits per row: rows of token_embd
  uint32_t tokens = 0;        ///< ids that have a text, ≤ vocabulary; the logits of the others are −∞
  uint32_t contextLength = 0; ///< that the model was made for
  float epsilon = 0;          ///< of every RMS norm
  float attentionScale = 0;
  Rope rope;
  bool qkNorm = false;        ///< Q and K are RMS-normed per head before they turn
  bool qkvBias = false;       ///< Q, K and V must have biases (any linear layer may have one)
  bool tied = false;          ///< the output head is token_embd
};

/// Reads and checks the keys and the shape and type of every tensor. Errors name the key or tensor. The tokenizer's keys have their
/// own check, gguf::checkVocabulary.
Result<Config> readConfig(const gguf::File& file);

} // namespace mashbox::model
