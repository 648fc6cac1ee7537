#include "model/binder.hpp"

#include <algorithm>

namespace mashbox::model {
namespace {

template <class Dims> std::string shape(const Dims& dims, size_t rank) {
  std::string out = "{";
  for (size_t i = 0; i < rank; ++i) out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + "}";
}

bool isFloat(quant::Type type) { return type == quant::Type::F32 || type == quant::Type::F16 || type == quant::Type::BF16; }

/// Trailing dimensions of 1 do not count, but a vector has rank 1.
bool fits(const gguf::Tensor& tensor, const std::vector<uint64_t>& dims) {
  if (dims.size() == 1 && tensor.rank != 1) return false;
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    if (tensor.dims[i] != (i < dims.size() ? dims[i] : 1)) return false;
  return true;
}

} // namespace

const gguf::Tensor* Binder::bind(const std::string& name, const std::vector<uint64_t>& dims, bool required) {
  if (error_) return nullptr;
  const gguf::Tensor* tensor = file_.tensor(name);
  if (!tensor) {
    if (required) fail(ErrorKind::Inconsistent, name, "the tensor is missing");
    return nullptr;
  }
  if (!fits(*tensor, dims)) {
    fail(ErrorKind::Inconsistent, name, "the shape is " + shape(tensor->dims, tensor->rank) + ", but " + shape(dims, dims.size()) + " is needed");
    return nullptr;
  }
  if (dims.size() == 1 ? !isFloat(tensor->format->type) : !tensor->format->decodable) {
    fail(ErrorKind::Unsupported, name, std::string("type ") + tensor->format->name + " is not supported here");
    return nullptr;
  }
  bound_.push_back(tensor);
  return tensor;
}

Linear Binder::linear(const std::string& base, uint64_t inputs, uint64_t outputs, bool biasRequired) {
  Linear out;
  out.weight = matrix(base + ".weight", inputs, outputs);
  out.bias = bind(base + ".bias", {outputs}, biasRequired);
  out.scale = scale(base + ".scale");
  return out;
}

float Binder::scale(const std::string& name) {
  const auto* tensor = optionalVector(name, 1);
  return tensor ? vectorValues(*tensor)[0] : 1;
}

std::vector<const gguf::Tensor*> Binder::bound() const {
  std::vector<const gguf::Tensor*> out = bound_;
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void Binder::fail(ErrorKind kind, const std::string& name, const std::string& message) {
  if (!error_) error_ = Error{kind, name + ": " + message, name};
}

std::vector<float> vectorValues(const gguf::Tensor& tensor) {
  std::vector<float> out(tensor.dims[0]);
  quant::dequantize(tensor.format->type, tensor.data, out);
  return out;
}

} // namespace mashbox::model
