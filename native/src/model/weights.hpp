#pragma once

#include "model/tensors.hpp"

#include <optional>
#include <vector>

namespace mashbox::model {

/// The structures of model/tensors.hpp on a device; see there.
struct AttentionWeights {
  PlacedLinear query, key, value, output, gate;
  Weight queryNorm = Weight::None, keyNorm = Weight::None, sinks = Weight::None;
};

struct FeedForwardWeights {
  PlacedLinear gate, up, down;
};

struct SideBySideWeights {
  Weight denseAfter = Weight::None, expertsBefore = Weight::None, expertsAfter = Weight::None, router = Weight::None;
};

struct PerLayerWeights {
  PlacedLinear gate, projection;
  Weight norm = Weight::None;
};

struct LayerWeights {
  Weight mixerNorm = Weight::None, mixerAfter = Weight::None;
  std::optional<AttentionWeights> attention;
  std::optional<DeltaNetWeights> deltaNet;
  Weight feedForwardNorm = Weight::None, feedForwardAfter = Weight::None;
  std::optional<FeedForwardWeights> feedForward;
  std::optional<ExpertsWeights> experts;
  SideBySideWeights sideBySide;
  std::optional<PerLayerWeights> perLayer;
  float scale = 1;
};

/// All weights of a model on a device.
struct Weights {
  Weight embedding = Weight::None;
  Weight perLayerEmbedding = Weight::None, perLayerNorm = Weight::None;
  PlacedLinear perLayerProjection;
  std::vector<LayerWeights> layers;
  Weight outputNorm = Weight::None;
  PlacedLinear output;
};

Result<Weights> placeWeights(const Tensors& tensors, Device& device);

} // namespace mashbox::model
