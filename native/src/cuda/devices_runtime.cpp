#include "cuda/devices.hpp"

#include <cuda_runtime_api.h>

namespace mashbox::cuda {
namespace {

Devices none(cudaError_t error) {
  cudaGetLastError();
  return {.built = true, .reason = std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")", .devices = {}};
}

} // namespace

Devices listDevices() {
  int count = 0;
  if (const auto error = cudaGetDeviceCount(&count); error != cudaSuccess) return none(error);
  if (count == 0) return none(cudaErrorNoDevice);
  Devices found{.built = true, .reason = {}, .devices = {}};
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties;
    if (const auto error = cudaGetDeviceProperties(&properties, ordinal); error != cudaSuccess) return none(error);
    found.devices.push_back({
      .name = properties.name,
      .memoryBytes = properties.totalGlobalMem,
      .computeCapability = std::to_string(properties.major) + "." + std::to_string(properties.minor),
    });
  }
  return found;
}

} // namespace mashbox::cuda
