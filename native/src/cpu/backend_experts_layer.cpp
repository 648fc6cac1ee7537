#include "cpu/backend_experts_layer.hpp"

#include <algorithm>

namespace mashbox::cpu {
namespace {

ExpertMatrices stackOf(const model::PlacedStack& stack, size_t rows, const MatrixStore& store) {
  const Matrix& matrix = store.matrix(stack.weight);
  ExpertMatrices out;
  out.type = matrix.type();
  out.experts = matrix.stack.data();
  out.rowBytes = matrix.rowBytes;
  out.firstRow = stack.firstRow;
  out.rows = rows;
  out.scale = store.vector(stack.scale);
  if (stack.bias == model::Weight::None) return out;
  const gguf::Tensor& bias = *store.matrix(stack.bias).tensor;
  out.bias = reinterpret_cast<const float*>(bias.data) + stack.firstRow;
  out.biasStride = bias.dims[0];
  return out;
}

/// A plain linear layer as a stack of one.
ExpertMatrices stackOf(const model::PlacedLinear& linear, const MatrixStore& store) {
  const Matrix& matrix = store.matrix(linear.weight);
  return {matrix.type(), matrix.stack.data(), matrix.rowBytes, 0, matrix.rows(), store.vector(linear.bias), 0, &linear.scale};
}

} // namespace

ExpertLayer expertLayer(const model::Experts& experts, const model::ExpertsWeights& weights, const MatrixStore& store) {
  ExpertLayer out;
  out.rule = {experts.gating,     experts.count,     experts.used,  experts.groups,
              experts.usedGroups, experts.normalise, experts.scale, store.vector(weights.selectionBias)};
  const size_t width = store.matrix(weights.down.weight).rows();
  out.routed = {stackOf(weights.gate, experts.width, store), stackOf(weights.up, experts.width, store), stackOf(weights.down, width, store), experts.activation};
  if (experts.sharedWidth)
    out.shared = {stackOf(weights.sharedGate, store), stackOf(weights.sharedUp, store), stackOf(weights.sharedDown, store), experts.activation};
  return out;
}

ExpertCapacity expertCapacity(const model::BackendShape& shape) {
  ExpertCapacity out;
  out.batchRows = shape.batchRows;
  out.width = shape.width;
  for (const model::LayerConfig& layer : shape.layers) {
    if (!layer.experts) continue;
    out.experts = std::max(out.experts, layer.experts->count);
    out.used = std::max(out.used, layer.experts->used);
    out.feedForward = std::max(out.feedForward, layer.experts->width);
    out.sharedFeedForward = std::max(out.sharedFeedForward, layer.experts->sharedWidth);
  }
  return out;
}

} // namespace mashbox::cpu
