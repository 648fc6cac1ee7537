#pragma once

#include "model/binder.hpp"
#include "model/config.hpp"
#include "model/placer.hpp"

namespace mashbox::model {

/// The tensors of a layer's experts by their part.
struct ExpertsTensors {
  Linear router; ///< {width, count}
};

/// The same on a device.
struct ExpertsWeights {
  PlacedLinear router;
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
