#pragma once

#include "model/binder.hpp"
#include "model/config.hpp"
#include "model/placer.hpp"

#include <vector>

namespace mashbox::model {

/// One matrix per expert: the outputs of expert e are scale[e] · W x + bias. In a fused stack several parts lie behind each other:
/// the rows of this one begin at `firstRow` of every expert.
struct ExpertStack {
  const gguf::Tensor* weight = nullptr; ///< {inputs, outputs of all parts, count}; null where `apart` is not empty
  std::vector<const gguf::Tensor*> apart{}; ///< {inputs, outputs} of every expert, all of one type: what files from before stacks have
  const gguf::Tensor* bias = nullptr;   ///< {outputs of all parts, count}, F32; may be null
  const gguf::Tensor* scale = nullptr;  ///< {count}; may be null
  uint32_t firstRow = 0;

  quant::Type type() const { return (weight ? weight : apart.front())->format->type; }
};

/// The tensors of a layer's experts by their part. What a layer does not have is null.
struct ExpertsTensors {
  Linear router;                                ///< {width, count}
  const gguf::Tensor* selectionBias = nullptr;  ///< {count}
  ExpertStack gate, up, down;
  Linear sharedGate, sharedUp, sharedDown;
  Linear sharedRouter;                          ///< {width, 1}: the logit by which the shared expert's output is weighed
};

/// The same on a device.
struct PlacedStack {
  Weight weight = Weight::None, bias = Weight::None, scale = Weight::None;
  uint32_t firstRow = 0;
};

struct ExpertsWeights {
  PlacedLinear router;
  Weight selectionBias = Weight::None;
  PlacedStack gate, up, down;
  PlacedLinear sharedGate, sharedUp, sharedDown, sharedRouter;
};

/// `block` is "blk.N.".
ExpertsTensors bindExperts(Binder& bind, const Config& config, const Experts& experts, const std::string& block);
ExpertsWeights placeExperts(Placer& placer, const ExpertsTensors& tensors);

/// out = Σ wₑ · expertₑ(in) + shared(in), or out += … where `add` is set.
struct ExpertsCall {
  const Experts& experts;
  const ExpertsWeights& weights;
  uint32_t rows;
  Buffer in;
  Buffer routerIn; ///< what the router looks at; `in` for most families
  Buffer out;
  bool add;
};

} // namespace mashbox::model
