#pragma once

#include "model/activation.hpp"

#include <cstdint>

namespace mashbox::model {

enum class Gating {
  Softmax,          ///< over all experts
  Sigmoid,          ///< of every expert by itself
  RootSoftplus,     ///< √log(1 + e^logit) of every expert by itself
  SoftmaxOfSelected ///< selection by raw logits, softmax over the selected
};

/// A mixture of experts: `used` of `count` feed-forwards, chosen per token by a router, and perhaps one that always runs.
struct Experts {
  uint32_t count = 0, used = 0;
  uint32_t width = 0; ///< of one expert's feed-forward
  Activation activation = Activation::Silu;
  Gating gating = Gating::Softmax;
  bool normalise = false;     ///< the selected weights are divided by their sum
  float scale = 1;            ///< of the weights, after normalising
  bool selectionBias = false; ///< exp_probs_b is added for the selection only
  uint32_t groups = 1, usedGroups = 1;
  uint32_t sharedWidth = 0; ///< of the expert that always runs; 0: none
  bool sharedGate = false;  ///< its output is multiplied by sigmoid(ffn_gate_inp_shexp · x)
};

} // namespace mashbox::model
