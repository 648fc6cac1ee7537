#include "model/delta_net_weights.hpp"

namespace mashbox::model {

DeltaNetTensors bindDeltaNet(Binder& bind, const Config& config, const DeltaNet& deltaNet, const std::string& block) {
  DeltaNetTensors out;
  out.output = bind.linear(block + "ssm_out", uint64_t{deltaNet.valueHeads} * deltaNet.valueLength, config.width);
  return out;
}

DeltaNetWeights placeDeltaNet(Placer& placer, const DeltaNetTensors& tensors) { return {placer.place(tensors.output)}; }

} // namespace mashbox::model
