#pragma once

#include "model/binder.hpp"
#include "model/config.hpp"
#include "model/placer.hpp"

namespace mashbox::model {

/// The tensors of a gated DeltaNet mixer by their part. The projections come in two layouts: `qkv` {width, q of all key heads | k of all
/// | v of all value heads} with `gate` {width, valueHeads · valueLength}, or as in older qwen3next files `joint` {width, per key head its
/// q | k | v of its value heads | gates of these}. `beta` and `alpha` {width, valueHeads} may be `betaAlpha` {width, per key head the
/// betas of its value heads | their alphas}.
struct DeltaNetTensors {
  Linear qkv, gate, joint;
  Linear beta, alpha, betaAlpha;
  const gguf::Tensor* taps = nullptr;     ///< {convolution, convolutionWidth}, the oldest tap first
  const gguf::Tensor* timeBias = nullptr; ///< {valueHeads}
  const gguf::Tensor* decay = nullptr;    ///< {valueHeads}: −e^A
  const gguf::Tensor* norm = nullptr;     ///< {valueLength}
  Linear output;                          ///< {valueHeads · valueLength, width}
};

/// The same on a device.
struct DeltaNetWeights {
  PlacedLinear qkv, gate, joint;
  PlacedLinear beta, alpha, betaAlpha;
  Weight taps = Weight::None, timeBias = Weight::None, decay = Weight::None, norm = Weight::None;
  PlacedLinear output;
};

/// `block` is "blk.N.".
DeltaNetTensors bindDeltaNet(Binder& bind, const Config& config, const DeltaNet& deltaNet, const std::string& block);
DeltaNetWeights placeDeltaNet(Placer& placer, const DeltaNetTensors& tensors);

/// Convolution, recurrence and gated norm of one layer: `out` is what `weights.output` projects. Rows of a sequence go on from its
/// state and leave it behind them.
struct DeltaNetCall {
  const DeltaNet& deltaNet;
  const DeltaNetWeights& weights;
  uint32_t layer;
  uint32_t rows;
  float epsilon;
  Buffer in; ///< the normed rows
  Buffer out;
};

} // namespace mashbox::model
