#include "cpu/backend_delta_net_layer.hpp"

#include <algorithm>

namespace mashbox::cpu {
namespace {

using model::DeltaNet;
using model::Weight;

struct Values {
  const float* at;
  size_t rowStride;
};

/// Heads one after the other from `offset` on.
DeltaNetInput inARow(Values values, size_t offset, size_t headStride) { return {values.at + offset, values.rowStride, 1, headStride, 0}; }

void separateInputs(DeltaNetRows& rows, const DeltaNet& d, Values qkv, Values gate) {
  const size_t keys = size_t{d.keyHeads} * d.keyLength;
  rows.query = inARow(qkv, 0, d.keyLength);
  rows.key = inARow(qkv, keys, d.keyLength);
  rows.value = inARow(qkv, 2 * keys, d.valueLength);
  rows.gate = inARow(gate, 0, d.valueLength);
}

void jointInputs(DeltaNetRows& rows, const DeltaNet& d, Values joint) {
  const uint32_t group = d.valueHeads / d.keyHeads;
  const size_t values = size_t{group} * d.valueLength, stride = size_t{2} * d.keyLength + 2 * values;
  rows.query = inARow(joint, 0, stride);
  rows.key = inARow(joint, d.keyLength, stride);
  rows.value = {joint.at + 2 * d.keyLength, joint.rowStride, group, stride, d.valueLength};
  rows.gate = {joint.at + 2 * d.keyLength + values, joint.rowStride, group, stride, d.valueLength};
}

} // namespace

std::vector<DeltaNet> DeltaNetLayers::shapesOf(const model::BackendShape& shape) {
  std::vector<DeltaNet> out;
  for (const model::LayerConfig& layer : shape.layers)
    if (layer.deltaNet) out.push_back(*layer.deltaNet);
  return out;
}

DeltaNetProjections<uint32_t> DeltaNetLayers::widths(const model::BackendShape& shape) {
  DeltaNetProjections<uint32_t> most;
  for (const DeltaNet& d : shapesOf(shape)) {
    const uint32_t values = d.valueHeads * d.valueLength;
    most.mixed = std::max(most.mixed, d.convolutionWidth() + values);
    most.gate = std::max(most.gate, values);
    most.beta = std::max(most.beta, 2 * d.valueHeads);
    most.alpha = std::max(most.alpha, d.valueHeads);
  }
  return most;
}

Result<std::optional<DeltaNetLayers>> DeltaNetLayers::create(const model::BackendShape& shape, const Kernels& kernels, ThreadPool& pool) {
  auto shapes = shapesOf(shape);
  if (shapes.empty()) return std::optional<DeltaNetLayers>();
  auto states = DeltaNetStates::create(std::move(shapes), shape.states);
  if (!states) return states.error();
  auto mixer = DeltaNetMixer::create(std::move(*states), shape.batchRows, kernels, pool);
  if (!mixer) return mixer.error();
  DeltaNetLayers out(std::move(*mixer));
  for (uint32_t place = 0; const model::LayerConfig& layer : shape.layers) out.places_.push_back(layer.deltaNet ? place++ : 0);
  out.taps_.resize(shape.layers.size());
  return std::optional(std::move(out));
}

void DeltaNetLayers::begin(std::span<const model::RowRange> ranges) {
  for (const model::RowRange& range : ranges)
    if (range.stateSource) states().copy(*range.stateSource, range.state, range.position);
  mixer_.begin(ranges);
}

/// The convolution's weights with the taps as rows.
const float* DeltaNetLayers::taps(const model::DeltaNetCall& call, const MatrixStore& store) {
  LineVector<float>& out = taps_[call.layer];
  if (!out.empty()) return out.data();
  const Matrix& matrix = store.matrix(call.weights.taps);
  const size_t count = call.deltaNet.convolution, width = call.deltaNet.convolutionWidth();
  std::vector<float> channel(count);
  out.resize(count * width);
  for (size_t i = 0; i < width; ++i) {
    quant::dequantize(matrix.type(), matrix.tensor->data + i * matrix.rowBytes, channel);
    for (size_t tap = 0; tap < count; ++tap) out[tap * width + i] = channel[tap];
  }
  return out.data();
}

void DeltaNetLayers::run(const model::DeltaNetCall& call, const MatrixStore& store, const DeltaNetProjections<const float*>& in, float* out) {
  const DeltaNet& d = call.deltaNet;
  const model::DeltaNetWeights& weights = call.weights;
  const size_t values = size_t{d.valueHeads} * d.valueLength;
  DeltaNetRows rows{};
  rows.layer = places_[call.layer];
  if (weights.joint.weight != Weight::None)
    jointInputs(rows, d, {in.mixed, d.convolutionWidth() + values});
  else
    separateInputs(rows, d, {in.mixed, d.convolutionWidth()}, {in.gate, values});
  if (weights.betaAlpha.weight != Weight::None) {
    const uint32_t group = d.valueHeads / d.keyHeads;
    rows.beta = {in.beta, size_t{2} * d.valueHeads, group, size_t{2} * group, 1};
    rows.alpha = {in.beta + group, size_t{2} * d.valueHeads, group, size_t{2} * group, 1};
  } else {
    rows.beta = inARow({in.beta, d.valueHeads}, 0, 1);
    rows.alpha = inARow({in.alpha, d.valueHeads}, 0, 1);
  }
  rows.taps = taps(call, store);
  rows.timeBias = store.vector(weights.timeBias);
  rows.decay = store.vector(weights.decay);
  rows.norm = store.vector(weights.norm);
  rows.epsilon = call.epsilon;
  rows.out = out;
  mixer_.run(rows);
}

std::vector<model::Projection> deltaNetProjections(const model::DeltaNetWeights& weights, const DeltaNetProjections<model::Buffer>& buffers) {
  std::vector<model::Projection> out;
  const auto add = [&](const model::PlacedLinear& linear, model::Buffer buffer) {
    if (linear.weight != Weight::None) out.push_back(linear.into(buffer));
  };
  add(weights.joint, buffers.mixed);
  add(weights.qkv, buffers.mixed);
  add(weights.gate, buffers.gate);
  add(weights.betaAlpha, buffers.beta);
  add(weights.beta, buffers.beta);
  add(weights.alpha, buffers.alpha);
  return out;
}

} // namespace mashbox::cpu
