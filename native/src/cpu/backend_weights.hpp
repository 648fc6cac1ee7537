#pragma once

#include "gguf/file.hpp"
#include "model/backend.hpp"
#include "model/binder.hpp"

#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace mashbox::cpu {

/// A placed tensor. Its bytes stay where they are mapped; a vector is kept as float32 besides.
struct Matrix {
  const gguf::Tensor* tensor;
  size_t rowBytes;
  std::vector<float> vector;           ///< the values of a tensor of rank 1
  std::vector<const std::byte*> stack; ///< where the matrices of a stack begin; of a plain matrix only `tensor.data`

  quant::Type type() const { return tensor->format->type; }
  size_t inputs() const { return tensor->dims[0]; }
  size_t rows() const { return tensor->dims[1]; }
};

/// The placed tensors of a model.
class MatrixStore {
public:
  model::Weight place(const gguf::Tensor& tensor) {
    std::vector<const std::byte*> stack;
    const size_t bytes = tensor.dims[1] * tensor.rowBytes();
    for (uint64_t i = 0; i < tensor.dims[2]; ++i) stack.push_back(tensor.data + i * bytes);
    return add(tensor, std::move(stack));
  }
  model::Weight placeStack(std::span<const gguf::Tensor* const> matrices) {
    std::vector<const std::byte*> stack;
    for (const gguf::Tensor* matrix : matrices) stack.push_back(matrix->data);
    return add(*matrices.front(), std::move(stack));
  }
  const Matrix& matrix(model::Weight weight) const { return matrices_[static_cast<uint32_t>(weight)]; }
  /// Null for Weight::None.
  const float* vector(model::Weight weight) const { return weight == model::Weight::None ? nullptr : matrix(weight).vector.data(); }

private:
  model::Weight add(const gguf::Tensor& tensor, std::vector<const std::byte*> stack) {
    const gguf::Tensor& kept = tensors_.emplace_back(tensor);
    matrices_.push_back({&kept, tensor.rowBytes(), tensor.rank == 1 ? model::vectorValues(tensor) : std::vector<float>(), std::move(stack)});
    return model::Weight{static_cast<uint32_t>(matrices_.size() - 1)};
  }

  std::deque<gguf::Tensor> tensors_; ///< of the matrices
  std::vector<Matrix> matrices_;
};

} // namespace mashbox::cpu
