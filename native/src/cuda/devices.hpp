#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mashbox::cuda {

struct Device {
  std::string name;
  uint64_t memoryBytes;          ///< all of the device's memory
  std::string computeCapability; ///< "9.0"
};

struct Devices {
  bool built;                  ///< whether this build knows CUDA at all
  std::string reason;          ///< why `devices` is empty; empty where it is not
  std::vector<Device> devices; ///< by the runtime's ordinal
};

/// Asks the CUDA runtime. The first call may start the driver (some 100 ms); nothing is asked before it.
Devices listDevices();

} // namespace mashbox::cuda
