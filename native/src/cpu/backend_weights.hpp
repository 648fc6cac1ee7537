#pragma once

#include "gguf/file.hpp"
#include "model/backend.hpp"
#include "model/binder.hpp"

#include <cstddef>
#include <vector>

namespace mashbox::cpu {

/// A placed tensor. Its bytes stay where they are mapped; a vector is kept as float32 besides.
struct Matrix {
  const gguf::Tensor* tensor;
  size_t rowBytes;
  std::vector<float> vector; ///< the values of a tensor of rank 1

  quant::Type type() const { return tensor->format->type; }
  size_t inputs() const { return tensor->dims[0]; }
  size_t rows() const { return tensor->dims[1]; }
};

/// The placed tensors of a model.
class MatrixStore {
public:
  model::Weight place(const gguf::Tensor& tensor) {
    matrices_.push_back({&tensor, tensor.rowBytes(), tensor.rank == 1 ? model::vectorValues(tensor) : std::vector<float>()});
    return model::Weight{static_cast<uint32_t>(matrices_.size() - 1)};
  }
  const Matrix& matrix(model::Weight weight) const { return matrices_[static_cast<uint32_t>(weight)]; }
  /// Null for Weight::None.
  const float* vector(model::Weight weight) const { return weight == model::Weight::None ? nullptr : matrix(weight).vector.data(); }

private:
  std::vector<Matrix> matrices_;
};

} // namespace mashbox::cpu
