#include "cuda/devices.hpp"

namespace mashbox::cuda {

Devices listDevices() { return {.built = false, .reason = "built without CUDA: nvcc was not found", .devices = {}}; }

} // namespace mashbox::cuda
