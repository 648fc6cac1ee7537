#include "model/delta_net_weights.hpp"

namespace mashbox::model {

DeltaNetTensors bindDeltaNet(Binder& bind, const Config& config, const DeltaNet& d, const std::string& block) {
  const uint64_t width = config.width, values = uint64_t{d.valueHeads} * d.valueLength;
  // Heads that stand together with their key head can only be grouped.
  const bool grouped = d.headMap == HeadMap::Grouped;
  DeltaNetTensors out;
  if (grouped && bind.has(block + "ssm_in.weight")) {
    out.joint = bind.linear(block + "ssm_in", width, d.convolutionWidth() + values);
  } else {
    out.qkv = bind.linear(block + "attn_qkv", width, d.convolutionWidth());
    out.gate = bind.linear(block + "attn_gate", width, values);
  }
  if (grouped && bind.has(block + "ssm_ba.weight")) {
    out.betaAlpha = bind.linear(block + "ssm_ba", width, uint64_t{2} * d.valueHeads);
  } else {
    out.beta = bind.linear(block + "ssm_beta", width, d.valueHeads);
    out.alpha = bind.linear(block + "ssm_alpha", width, d.valueHeads);
  }
  out.taps = bind.matrix(block + "ssm_conv1d.weight", d.convolution, d.convolutionWidth());
  out.timeBias = bind.vector(block + "ssm_dt.bias", d.valueHeads);
  out.decay = bind.vector(block + "ssm_a", d.valueHeads);
  out.norm = bind.vector(block + "ssm_norm.weight", d.valueLength);
  out.output = bind.linear(block + "ssm_out", values, width);
  return out;
}

DeltaNetWeights placeDeltaNet(Placer& placer, const DeltaNetTensors& t) {
  return {placer.place(t.qkv),  placer.place(t.gate),     placer.place(t.joint), placer.place(t.beta), placer.place(t.alpha), placer.place(t.betaAlpha),
          placer.place(t.taps), placer.place(t.timeBias), placer.place(t.decay), placer.place(t.norm), placer.place(t.output)};
}

} // namespace mashbox::model
