#pragma once

#include "cpu/kernels.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace mashbox::model {

struct Tensors;

/// How the routed experts of a model are multiplied. A site is one stack of a layer: gate, up or down.
struct ExpertPaths {
  uint32_t kernelSites = 0; ///< that this instruction tier has a kernel for
  uint32_t exactSites = 0;  ///< that run the scalar tier's
  std::vector<std::string> exactReasons; ///< why, each once

  bool any() const { return kernelSites + exactSites > 0; }
};

ExpertPaths findExpertPaths(const Tensors& tensors, cpu::Isa isa);

} // namespace mashbox::model
