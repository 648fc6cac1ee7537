#include "model/experts_weights.hpp"

namespace mashbox::model {
namespace {

/// `<part>.E.weight` of every expert E.
std::vector<const gguf::Tensor*> bindApart(Binder& bind, const std::string& part, uint64_t inputs, uint64_t outputs, uint64_t count) {
  std::vector<const gguf::Tensor*> out;
  for (uint64_t expert = 0; expert < count && !bind.error(); ++expert) {
    const std::string name = part + "." + std::to_string(expert) + ".weight";
    out.push_back(bind.matrix(name, inputs, outputs));
    if (out.back() && out.back()->format != out.front()->format)
      bind.fail(ErrorKind::Unsupported, name, std::string("type ") + out.back()->format->name + " is not that of expert 0, " + out.front()->format->name);
  }
  return out;
}

/// `<part>_exps`, or the experts' own tensors where there is no such stack.
ExpertStack bindStack(Binder& bind, const std::string& part, uint64_t inputs, uint64_t outputs, uint64_t count) {
  const std::string base = part + "_exps";
  ExpertStack out;
  if (!bind.has(base + ".weight") && bind.has(part + ".0.weight")) {
    out.apart = bindApart(bind, part, inputs, outputs, count);
    return out;
  }
  out.weight = bind.bind(base + ".weight", {inputs, outputs, count}, true);
  out.bias = bind.bind(base + ".bias", {outputs, count}, false);
  if (out.bias && out.bias->format->type != quant::Type::F32)
    bind.fail(ErrorKind::Unsupported, base + ".bias", std::string("type ") + out.bias->format->name + " is not supported here");
  out.scale = bind.optionalVector(base + ".scale", count);
  return out;
}

PlacedStack placeStack(Placer& placer, const ExpertStack& stack) {
  const Weight weight = stack.weight ? placer.place(stack.weight) : placer.placeStack(stack.apart);
  return {weight, placer.place(stack.bias), placer.place(stack.scale), stack.firstRow};
}

} // namespace

ExpertsTensors bindExperts(Binder& bind, const Config& config, const Experts& experts, const std::string& block) {
  ExpertsTensors out;
  const uint64_t width = config.width, inner = experts.width, count = experts.count;
  // No scale: what Gemma 4 calls ffn_gate_inp.scale belongs to the norm before the router.
  out.router.weight = bind.matrix(block + "ffn_gate_inp.weight", width, count);
  out.router.bias = bind.optionalVector(block + "ffn_gate_inp.bias", count);
  out.selectionBias = bind.bind(block + "exp_probs_b.bias", {count}, experts.selectionBias);
  if (bind.has(block + "ffn_gate_up_exps.weight")) {
    out.gate = out.up = bindStack(bind, block + "ffn_gate_up", width, 2 * inner, count);
    out.up.firstRow = experts.width;
  } else {
    out.gate = bindStack(bind, block + "ffn_gate", width, inner, count);
    out.up = bindStack(bind, block + "ffn_up", width, inner, count);
  }
  out.down = bindStack(bind, block + "ffn_down", inner, width, count);
  if (experts.sharedWidth == 0) return out;
  out.sharedGate = bind.linear(block + "ffn_gate_shexp", width, experts.sharedWidth);
  out.sharedUp = bind.linear(block + "ffn_up_shexp", width, experts.sharedWidth);
  out.sharedDown = bind.linear(block + "ffn_down_shexp", experts.sharedWidth, width);
  if (experts.sharedGate) out.sharedRouter = bind.linear(block + "ffn_gate_inp_shexp", width, 1);
  return out;
}

ExpertsWeights placeExperts(Placer& placer, const ExpertsTensors& t) {
  ExpertsWeights out;
  out.router = placer.place(t.router);
  out.selectionBias = placer.place(t.selectionBias);
  out.gate = placeStack(placer, t.gate);
  out.up = placeStack(placer, t.up);
  out.down = placeStack(placer, t.down);
  out.sharedGate = placer.place(t.sharedGate);
  out.sharedUp = placer.place(t.sharedUp);
  out.sharedDown = placer.place(t.sharedDown);
  out.sharedRouter = placer.place(t.sharedRouter);
  return out;
}

} // namespace mashbox::model
