#pragma once

#include "model/linear.hpp"

#include <optional>

namespace mashbox::model {

/// Puts tensors on a device. The first failure is kept, so that placing is a plain list; an absent tensor is Weight::None.
class Placer {
public:
  explicit Placer(Device& device) : device_(device) {}

  Weight place(const gguf::Tensor* tensor) {
    if (!tensor || error_) return Weight::None;
    const auto weight = device_.place(*tensor);
    if (weight) return *weight;
    error_ = weight.error();
    return Weight::None;
  }
  PlacedLinear place(const Linear& linear) { return {place(linear.weight), place(linear.bias), linear.scale}; }

  const std::optional<Error>& error() const { return error_; }

private:
  Device& device_;
  std::optional<Error> error_;
};

} // namespace mashbox::model
