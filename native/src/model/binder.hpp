#pragma once

#include "gguf/file.hpp"
#include "model/linear.hpp"

#include <optional>
#include <string>
#include <vector>

namespace mashbox::model {

/// Finds tensors by name and checks their shape and type. The first failure is kept, so that binding is a plain list of names:
/// Inconsistent when a tensor is missing or has the wrong shape, Unsupported when its type cannot be decoded.
class Binder {
public:
  explicit Binder(const gguf::File& file) : file_(file) {}

  bool has(const std::string& name) const { return file_.tensor(name) != nullptr; }
  const gguf::Tensor* matrix(const std::string& name, uint64_t inputs, uint64_t outputs) { return bind(name, {inputs, outputs}, true); }
  const gguf::Tensor* vector(const std::string& name, uint64_t length) { return bind(name, {length}, true); }
  const gguf::Tensor* optionalVector(const std::string& name, uint64_t length) { return bind(name, {length}, false); }
  /// `<base>.weight`, and where they exist `<base>.bias` and `<base>.scale`.
  Linear linear(const std::string& base, uint64_t inputs, uint64_t outputs, bool biasRequired = false);
  /// The value of a tensor of one element; 1 where there is none.
  float scale(const std::string& name);

  /// A tensor of the given dimensions, the contiguous one first. Null where it is absent and not required. Of rank 1: a float type.
  const gguf::Tensor* bind(const std::string& name, const std::vector<uint64_t>& dims, bool required);
  void fail(ErrorKind kind, const std::string& name, const std::string& message);
  const std::optional<Error>& error() const { return error_; }
  /// Every tensor that was found, each once, in the order of the file.
  std::vector<const gguf::Tensor*> bound() const;

private:
  const gguf::File& file_;
  std::vector<const gguf::Tensor*> bound_;
  std::optional<Error> error_;
};

/// The values of a tensor of rank 1 in float32.
std::vector<float> vectorValues(const gguf::Tensor& tensor);

} // namespace mashbox::model
