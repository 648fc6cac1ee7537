#pragma once

#include "model/backend.hpp"
#include "model/tensors.hpp"

#include <vector>

namespace mashbox::model {

/// A `Linear` on a device.
struct PlacedLinear {
  Weight weight = Weight::None, bias = Weight::None;
  float scale = 1;

  Projection into(Buffer out) const { return {weight, bias, scale, out, false}; }
  Projection addedTo(Buffer out) const { return {weight, bias, scale, out, true}; }
};

struct LayerWeights {
  Weight attentionNorm;
  PlacedLinear query, key, value, attentionOutput;
  Weight queryNorm = Weight::None, keyNorm = Weight::None;
  Weight feedForwardNorm;
  PlacedLinear gate, up, down;
};

/// All weights of a model on a device.
struct Weights {
  Weight embedding;
  std::vector<LayerWeights> layers;
  Weight outputNorm;
  PlacedLinear output;
};

Result<Weights> placeWeights(const Tensors& tensors, Device& device);

} // namespace mashbox::model
