#include "model/experts_weights.hpp"

namespace mashbox::model {

ExpertsTensors bindExperts(Binder& bind, const Config& config, const Experts& experts, const std::string& block) {
  ExpertsTensors out;
  out.router = bind.linear(block + "ffn_gate_inp", config.width, experts.count);
  return out;
}

ExpertsWeights placeExperts(Placer& placer, const ExpertsTensors& tensors) { return {placer.place(tensors.router)}; }

} // namespace mashbox::model
