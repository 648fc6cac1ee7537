#pragma once

#include "gguf/file.hpp"
#include "model/backend.hpp"

namespace mashbox::model {

/// y = scale · W x + bias; `bias` may be null.
struct Linear {
  const gguf::Tensor* weight = nullptr; ///< {inputs, outputs}
  const gguf::Tensor* bias = nullptr;   ///< {outputs}
  float scale = 1;                      ///< of `<base>.scale`, which NVFP4 files have
};

/// A `Linear` on a device.
struct PlacedLinear {
  Weight weight = Weight::None, bias = Weight::None;
  float scale = 1;

  Projection into(Buffer out) const { return {weight, bias, scale, out, false}; }
  Projection addedTo(Buffer out) const { return {weight, bias, scale, out, true}; }
};

} // namespace mashbox::model
