#include "model/experts_paths.hpp"

#include "model/tensors.hpp"

#include <algorithm>

namespace mashbox::model {
namespace {

/// Why a stack of this type has no kernel; empty where it has one.
std::string exactReason(quant::Type type, cpu::Isa isa) {
  if (isa == cpu::Isa::Scalar) return "the scalar tier has no vector kernels";
  if (cpu::hasKernel(type)) return "";
  return std::string(quant::format(type).name) + " has no vector kernel";
}

} // namespace

ExpertPaths findExpertPaths(const Tensors& tensors, cpu::Isa isa) {
  ExpertPaths out;
  for (const LayerTensors& layer : tensors.layers) {
    if (!layer.experts) continue;
    for (const ExpertStack* stack : {&layer.experts->gate, &layer.experts->up, &layer.experts->down}) {
      const std::string reason = exactReason(stack->type(), isa);
      ++(reason.empty() ? out.kernelSites : out.exactSites);
      if (!reason.empty() && std::find(out.exactReasons.begin(), out.exactReasons.end(), reason) == out.exactReasons.end()) out.exactReasons.push_back(reason);
    }
  }
  return out;
}

} // namespace mashbox::model
