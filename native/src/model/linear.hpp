#pragma once

#include "gguf/file.hpp"
#include "model/backend.hpp"

#include <cstdint>
#include <optional>

namespace mashbox::model {

/// Outputs [first, first + count) of a tensor that holds those of several layers behind each other.
struct Part {
  uint64_t first, count;
};

/// y = scale · W x + bias; `bias` may be null.
struct Linear {
  const gguf::Tensor* weight = nullptr; ///< {inputs, outputs}
  const gguf::Tensor* bias = nullptr;   ///< {outputs}
  float scale = 1;                      ///< of `<base>.scale`, which NVFP4 files have
  std::optional<Part> part{};           ///< of `weight` and `bias`, where they are not this layer's alone

  Linear outputs(uint64_t first, uint64_t count) const { return {weight, bias, scale, Part{first, count}}; }
};

/// A `Linear` on a device.
struct PlacedLinear {
  Weight weight = Weight::None, bias = Weight::None;
  float scale = 1;

  Projection into(Buffer out) const { return {weight, bias, scale, out, false}; }
  Projection addedTo(Buffer out) const { return {weight, bias, scale, out, true}; }
};

} // namespace mashbox::model
