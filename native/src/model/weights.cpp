#include "model/weights.hpp"

#include <optional>

namespace mashbox::model {
namespace {

/// Keeps the first failure, so that placing is a plain list.
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

} // namespace

Result<Weights> placeWeights(const Tensors& tensors, Device& device) {
  Placer placer(device);
  Weights out;
  out.embedding = placer.place(tensors.embedding);
  for (const LayerTensors& layer : tensors.layers) {
    LayerWeights placed;
    placed.attentionNorm = placer.place(layer.attentionNorm);
    placed.query = placer.place(layer.query);
    placed.key = placer.place(layer.key);
    placed.value = placer.place(layer.value);
    placed.attentionOutput = placer.place(layer.attentionOutput);
    placed.queryNorm = placer.place(layer.queryNorm);
    placed.keyNorm = placer.place(layer.keyNorm);
    placed.feedForwardNorm = placer.place(layer.feedForwardNorm);
    placed.gate = placer.place(layer.gate);
    placed.up = placer.place(layer.up);
    placed.down = placer.place(layer.down);
    out.layers.push_back(placed);
  }
  out.outputNorm = placer.place(tensors.outputNorm);
  out.output = tensors.output.weight == tensors.embedding ? PlacedLinear{out.embedding, Weight::None, 1} : placer.place(tensors.output);
  if (placer.error()) return *placer.error();
  return out;
}

} // namespace mashbox::model
