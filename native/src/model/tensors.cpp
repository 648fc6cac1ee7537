#include "model/tensors.hpp"

#include "model/keys.hpp"

#include <cmath>
#include <optional>

namespace mashbox::model {
namespace {

std::string shape(uint64_t d0, uint64_t d1) { return d1 == 0 ? "{" + std::to_string(d0) + "}" : "{" + std::to_string(d0) + ", " + std::to_string(d1) + "}"; }

std::string shape(const gguf::Tensor& tensor) {
  std::string out = "{";
  for (uint32_t i = 0; i < tensor.rank; ++i) out += (i ? ", " : "") + std::to_string(tensor.dims[i]);
  return out + "}";
}

/// Keeps the first failure, so that binding is a plain list of names.
class Binder {
public:
  explicit Binder(const gguf::File& file) : file_(file) {}

  const gguf::Tensor* matrix(const std::string& name, uint64_t inputs, uint64_t outputs) { return bind(name, inputs, outputs, true); }
  const gguf::Tensor* vector(const std::string& name, uint64_t length) { return bind(name, length, 0, true); }
  const gguf::Tensor* optionalVector(const std::string& name, uint64_t length) { return bind(name, length, 0, false); }

  Linear linear(const std::string& base, uint64_t inputs, uint64_t outputs, bool biasRequired = false) {
    Linear out;
    out.weight = matrix(base + ".weight", inputs, outputs);
    out.bias = bind(base + ".bias", outputs, 0, biasRequired);
    out.scale = scale(base);
    return out;
  }

  float scale(const std::string& base) {
    const auto* tensor = optionalVector(base + ".scale", 1);
    return tensor ? vectorValues(*tensor)[0] : 1;
  }

  void fail(ErrorKind kind, const std::string& name, const std::string& message) {
    if (!error_) error_ = Error{kind, name + ": " + message, name};
  }

  const std::optional<Error>& error() const { return error_; }

private:
  /// `outputs` 0: a vector.
  const gguf::Tensor* bind(const std::string& name, uint64_t inputs, uint64_t outputs, bool required) {
    if (error_) return nullptr;
    const gguf::Tensor* tensor = file_.tensor(name);
    if (!tensor) {
      if (required) fail(ErrorKind::Inconsistent, name, "the tensor is missing");
      return nullptr;
    }
    const bool vector = outputs == 0;
    const bool fits = tensor->dims[0] == inputs && tensor->dims[1] == (vector ? 1 : outputs) && tensor->dims[2] == 1 && tensor->dims[3] == 1;
    if (!fits || (vector && tensor->rank != 1)) {
      fail(ErrorKind::Inconsistent, name, "the shape is " + shape(*tensor) + ", but " + shape(inputs, outputs) + " is needed");
      return nullptr;
    }
    if (vector ? !isFloat(tensor->format->type) : !tensor->format->decodable) {
      fail(ErrorKind::Unsupported, name, std::string("type ") + tensor->format->name + " is not supported here");
      return nullptr;
    }
    return tensor;
  }

  static bool isFloat(quant::Type type) { return type == quant::Type::F32 || type == quant::Type::F16 || type == quant::Type::BF16; }

  const gguf::File& file_;
  std::optional<Error> error_;
};

LayerTensors bindLayer(Binder& bind, const Config& c, const std::string& block) {
  LayerTensors layer;
  layer.attentionNorm = bind.vector(block + "attn_norm.weight", c.width);
  layer.query = bind.linear(block + "attn_q", c.width, uint64_t{c.heads} * c.keyLength, c.qkvBias);
  layer.key = bind.linear(block + "attn_k", c.width, uint64_t{c.kvHeads} * c.keyLength, c.qkvBias);
  layer.value = bind.linear(block + "attn_v", c.width, uint64_t{c.kvHeads} * c.valueLength, c.qkvBias);
  if (c.qkNorm) {
    layer.queryNorm = bind.vector(block + "attn_q_norm.weight", c.keyLength);
    layer.keyNorm = bind.vector(block + "attn_k_norm.weight", c.keyLength);
  }
  layer.attentionOutput = bind.linear(block + "attn_output", uint64_t{c.heads} * c.valueLength, c.width);
  layer.feedForwardNorm = bind.vector(block + "ffn_norm.weight", c.width);
  layer.gate = bind.linear(block + "ffn_gate", c.width, c.feedForward);
  layer.up = bind.linear(block + "ffn_up", c.width, c.feedForward);
  layer.down = bind.linear(block + "ffn_down", c.feedForward, c.width);
  return layer;
}

void checkFactors(Binder& bind, const gguf::Tensor& factors) {
  for (const float factor : vectorValues(factors))
    if (!(std::isfinite(factor) && factor > 0)) bind.fail(ErrorKind::Invalid, std::string(factors.name), "a factor is not a finite number above 0");
}

} // namespace

Result<Tensors> bindTensors(const gguf::File& file, const Config& config) {
  Binder bind(file);
  Tensors out;
  out.embedding = bind.matrix("token_embd.weight", config.width, config.vocabulary);
  out.ropeFactors = bind.optionalVector("rope_freqs.weight", config.rope.dims / 2);
  if (out.ropeFactors) checkFactors(bind, *out.ropeFactors);
  for (uint32_t i = 0; i < config.layers && !bind.error(); ++i) out.layers.push_back(bindLayer(bind, config, "blk." + std::to_string(i) + "."));
  out.outputNorm = bind.vector("output_norm.weight", config.width);
  if (config.tied)
    out.output = {out.embedding, nullptr, 1};
  else
    out.output = bind.linear("output", config.width, config.vocabulary);
  if (bind.error()) return *bind.error();
  return out;
}

std::vector<float> vectorValues(const gguf::Tensor& tensor) {
  std::vector<float> out(tensor.dims[0]);
  quant::dequantize(tensor.format->type, tensor.data, out);
  return out;
}

} // namespace mashbox::model
