#pragma once

#include "base/result.hpp"
#include "model/activation.hpp"
#include "model/delta_net.hpp"
#include "model/experts.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  bool factors = true; ///< rope_freqs.weight is for this one, where it exists
  RopeScaling scaling = RopeScaling::None;
  double factor = 1;              ///< linear and YaRN: how many times the context was stretched
  double originalContext = 0;     ///< YaRN
  double betaFast = 32, betaSlow = 1;
  double attentionFactor = 1;     ///< YaRN: multiplies the magnitude (0.1 ln factor + 1)
  bool wholePairs = true;         ///< YaRN: the ramp's bounds are rounded outwards
};

/// What an attention layer's output is multiplied with before the output projection.
enum class OutputGate {
  None,
  Sigmoid,            ///< per element; attn_q has [query | gate] of every head
  SoftplusPerHead,    ///< attn_gate has one row per head
  SoftplusPerElement, ///< attn_gate has valueLength rows per head
};

struct Attention {
  uint32_t heads = 0;       ///< query heads
  uint32_t kvHeads = 0;     ///< divides `heads`
  uint32_t keyLength = 0;   ///< of one head of Q and K
  uint32_t valueLength = 0; ///< of one head of V
  uint32_t window = 0;      ///< position i sees j where i − j < window; 0: all before it
  std::optional<uint32_t> rope = 0; ///< in Config::ropes
  float scale = 0;
  float scoreSoftcap = 0;  ///< c: scores become c · tanh(score / c); 0: none
  bool qkNorm = false;     ///< Q and K are RMS-normed per head before they turn
  bool valueNorm = false;  ///< V is RMS-normed per head, without weights
  bool valueIsKey = false; ///< V is the K projection before its norm and rope
  bool qkvBias = false;    ///< Q, K and V must have biases (any linear layer may have one)
  bool sinks = false;      ///< one more logit per head in the softmax's denominator
  OutputGate gate = OutputGate::None;
  std::optional<uint32_t> cacheOf; ///< the earlier layer whose K and V this one reads; it has none of its own

  /// Rows of attn_q per head.
  uint32_t queryRows() const { return gate == OutputGate::Sigmoid ? keyLength + valueLength : keyLength; }
  bool ownsCache() const { return !cacheOf; }
};

/// One block: a mixer, which is attention or DeltaNet, and a feed-forward, which is dense, experts, or both side by side.
struct LayerConfig {
  std::optional<Attention> attention;
  std::optional<DeltaNet> deltaNet;
  uint32_t feedForward = 0; ///< width of the dense one; 0: none
  Activation activation = Activation::Silu;
  std::optional<Experts> experts;
};

/// What the forward program needs to know of a model: GGUF keys as numbers and flags.
struct Config {
  std::string architecture;
  std::vector<LayerConfig> layers; ///< the trunk, without blocks for multi-token prediction
  uint32_t predictionBlocks = 0;   ///< for multi-token prediction; they follow the trunk, and the forward program does not run them
  uint32_t width = 0;              ///< of the residual stream
  uint32_t vocabulary = 0;         ///< logits per row: rows of token_embd
  uint32_t tokens = 0;             ///< ids that have a text, ≤ vocabulary; the logits of the others are −∞
  uint32_t contextLength = 0;      ///< that the model was made for
  float epsilon = 0;               ///< of every RMS norm
  std::vector<Rope> ropes;
  float embeddingScale = 1;
  float logitSoftcap = 0;         ///< c: logits become c · tanh(logit / c); 0: none
  uint32_t perLayerWidth = 0;     ///< of the embedding that every layer adds of its own; 0: none
  bool sandwichNorms = false;     ///< post_attention_norm and post_ffw_norm before each sum
  const char* feedForwardNorm = "ffn_norm"; ///< name of the norm before the feed-forward
  bool tied = false;              ///< the output head is token_embd

  /// Sequences have a recurrent state besides their KV cache.
  bool recurrent() const {
    return std::any_of(layers.begin(), layers.end(), [](const LayerConfig& layer) { return layer.deltaNet.has_value(); });
  }
  /// The widest window of any layer; 0: none has one.
  uint32_t window() const;
};

/// Runs `change(attention, layer)` on every attention layer.
template <class Configuration, class Change> void forAttention(Configuration& config, const Change& change) {
  for (uint32_t i = 0; i < config.layers.size(); ++i)
    if (config.layers[i].attention) change(*config.layers[i].attention, i);
}

/// Reads and checks the keys and the shape and type of every tensor. Errors name the key or tensor. The tokenizer's keys have their
/// own check, gguf::checkVocabulary.
Result<Config> readConfig(const gguf::File& file);

} // namespace mashbox::model
