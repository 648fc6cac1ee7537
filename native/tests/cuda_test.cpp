#include "cuda/devices.hpp"
#include "test.hpp"

namespace {

using mashbox::test::check;
using mashbox::test::Test;

const Test listing{"cuda: lists devices, or says why there is none", [] {
  const auto found = mashbox::cuda::listDevices();
  check(found.devices.empty() == !found.reason.empty(), "a reason exactly where there is no device");
  check(found.reason.find('\n') == std::string::npos, "one line");
  if (!found.built) {
    check(found.devices.empty());
    check(found.reason == "built without CUDA: nvcc was not found", found.reason);
  }
  for (const auto& device : found.devices) {
    check(!device.name.empty());
    check(device.memoryBytes > (uint64_t{1} << 28), "device memory in bytes");
    check(device.computeCapability.size() >= 3 && device.computeCapability.find('.') != std::string::npos, device.computeCapability);
  }
}};

const Test repeatable{"cuda: asking twice gives the same answer", [] {
  const auto first = mashbox::cuda::listDevices(), second = mashbox::cuda::listDevices();
  check(first.built == second.built && first.reason == second.reason && first.devices.size() == second.devices.size());
}};

} // namespace
