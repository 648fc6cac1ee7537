#pragma once

#include "model/binder.hpp"
#include "model/delta_net_weights.hpp"
#include "model/experts_weights.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace mashbox::model {

/// Null where a layer's flags do not ask for it.
struct AttentionTensors {
  Linear query, key, value, output;
  Linear gate;                                                 ///< attn_gate
  const gguf::Tensor *queryNorm = nullptr, *keyNorm = nullptr; ///< {keyLength}
  const gguf::Tensor* sinks = nullptr;                         ///< {heads}
};

struct FeedForwardTensors {
  Linear gate, up, down;
};

/// The norms of a dense feed-forward and experts that run side by side.
struct SideBySideTensors {
  const gguf::Tensor *denseAfter = nullptr, *expertsBefore = nullptr, *expertsAfter = nullptr;
  const gguf::Tensor* router = nullptr; ///< scales the router's input
};

/// An embedding of its own that a layer mixes in at its end.
struct PerLayerTensors {
  Linear gate, projection;
  const gguf::Tensor* norm = nullptr;
};

struct LayerTensors {
  const gguf::Tensor *mixerNorm = nullptr, *mixerAfter = nullptr; ///< before the mixer; before its sum
  std::optional<AttentionTensors> attention;
  std::optional<DeltaNetTensors> deltaNet;
  const gguf::Tensor *feedForwardNorm = nullptr, *feedForwardAfter = nullptr;
  std::optional<FeedForwardTensors> feedForward;
  std::optional<ExpertsTensors> experts;
  SideBySideTensors sideBySide;
  std::optional<PerLayerTensors> perLayer;
  float scale = 1; ///< of the layer's output
};

/// The tensors of a model by their part in it.
struct Tensors {
  const gguf::Tensor* embedding = nullptr;
  const gguf::Tensor* ropeFactors = nullptr; ///< {dims / 2}; may be null
  const gguf::Tensor* perLayerEmbedding = nullptr; ///< {perLayerWidth · layers, vocabulary}
  Linear perLayerProjection;                       ///< {width, perLayerWidth · layers}
  const gguf::Tensor* perLayerNorm = nullptr;      ///< {perLayerWidth}
  std::vector<LayerTensors> layers;
  const gguf::Tensor* outputNorm = nullptr;
  Linear output;
  std::vector<const gguf::Tensor*> used; ///< all of these, each once, in the order of the file; it may have others, which are kept aside

  uint64_t bytes() const; ///< of `used`
};

/// Finds every tensor that `config` asks for; the error names the tensor. See Binder.
Result<Tensors> bindTensors(const gguf::File& file, const Config& config);

} // namespace mashbox::model
