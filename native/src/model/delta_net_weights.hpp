#pragma once

#include "model/binder.hpp"
#include "model/config.hpp"
#include "model/placer.hpp"

namespace mashbox::model {

/// The tensors of a gated DeltaNet mixer by their part.
struct DeltaNetTensors {
  Linear output; ///< {valueHeads · valueLength, width}
};

/// The same on a device.
struct DeltaNetWeights {
  PlacedLinear output;
};

/// `block` is "blk.N.".
DeltaNetTensors bindDeltaNet(Binder& bind, const Config& config, const DeltaNet& deltaNet, const std::string& block);
DeltaNetWeights placeDeltaNet(Placer& placer, const DeltaNetTensors& tensors);

/// Convolution, recurrence and gated norm of one layer: `out` is what `weights.output` projects.
struct DeltaNetCall {
  const DeltaNet& deltaNet;
  const DeltaNetWeights& weights;
  uint32_t layer;
  uint32_t rows;
  Buffer in; ///< the normed rows
  Buffer out;
};

} // namespace mashbox::model
