#pragma once

#include "model/linear.hpp"

#include <optional>
#include <span>

namespace mashbox::model {

/// Puts tensors on a device. The first failure is kept, so that placing is a plain list; an absent tensor is Weight::None.
class Placer {
public:
  explicit Placer(Device& device) : device_(device) {}

  Weight place(const gguf::Tensor* tensor) { return place(tensor, std::nullopt); }
  PlacedLinear place(const Linear& linear) { return {place(linear.weight, linear.part), place(linear.bias, linear.part), linear.scale}; }
  /// Matrices of one shape and type, which may lie apart, as one stack.
  Weight placeStack(std::span<const gguf::Tensor* const> matrices) { return error_ ? Weight::None : kept(device_.placeStack(matrices)); }

  const std::optional<Error>& error() const { return error_; }

private:
  Weight place(const gguf::Tensor* tensor, const std::optional<Part>& part) {
    if (!tensor || error_) return Weight::None;
    return kept(device_.place(part ? tensor->part(part->first, part->count) : *tensor));
  }
  Weight kept(Result<Weight> weight) {
    if (weight) return *weight;
    error_ = weight.error();
    return Weight::None;
  }

  Device& device_;
  std::optional<Error> error_;
};

} // namespace mashbox::model
