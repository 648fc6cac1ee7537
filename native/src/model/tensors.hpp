#pragma once

#include "gguf/file.hpp"
#include "model/config.hpp"

#include <vector>

namespace mashbox::model {

/// y = scale · W x + bias; `bias` may be null.
struct Linear {
  const gguf::Tensor* weight = nullptr; ///< {inputs, outputs}
  const gguf::Tensor* bias = nullptr;   ///< {outputs}
  float scale = 1;                      ///< of `<base>.scale`, which NVFP4 files have
};

struct LayerTensors {
  const gguf::Tensor* attentionNorm;
  Linear query, key, value, attentionOutput;
  const gguf::Tensor *queryNorm = nullptr, *keyNorm = nullptr; ///< {keyLength}; null without `qkNorm`
  const gguf::Tensor* feedForwardNorm;
  Linear gate, up, down;
};

/// The tensors of a model by their part in it.
struct Tensors {
  const gguf::Tensor* embedding;
  const gguf::Tensor* ropeFactors = nullptr; ///< {rope.dims / 2}; may be null
  std::vector<LayerTensors> layers;
  const gguf::Tensor* outputNorm;
  Linear output;
};

/// Finds every tensor that `config` asks for. Inconsistent when one is missing or has the wrong shape, Unsupported when its type
/// cannot be decoded; the tensor is named.
Result<Tensors> bindTensors(const gguf::File& file, const Config& config);

/// The values of a tensor of rank 1 in float32.
std::vector<float> vectorValues(const gguf::Tensor& tensor);

} // namespace mashbox::model
