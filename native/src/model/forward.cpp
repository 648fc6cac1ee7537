#include "model/forward.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace mashbox::model {
namespace {

/// Widths of the buffers: the largest that any layer needs.
struct Widths {
  uint64_t query = 0, key = 0, value = 0, attentionGate = 0, mixed = 0, feedForward = 0, branch = 0, sides = 0, experts = 0, deltaNet = 0, perLayer = 0, perLayerGate = 0;

  explicit Widths(const Config& config) {
    const auto atLeast = [](uint64_t& width, uint64_t needed) { width = std::max(width, needed); };
    for (const LayerConfig& layer : config.layers) {
      if (const auto& a = layer.attention) {
        const uint64_t out = uint64_t{a->heads} * a->valueLength;
        atLeast(query, uint64_t{a->heads} * a->queryRows());
        atLeast(key, uint64_t{a->kvHeads} * a->keyLength);
        atLeast(value, uint64_t{a->kvHeads} * a->valueLength);
        atLeast(mixed, out);
        if (a->gate == OutputGate::SoftplusPerHead) atLeast(attentionGate, a->heads);
        if (a->gate == OutputGate::SoftplusPerElement) atLeast(attentionGate, out);
      }
      if (const auto& d = layer.deltaNet) {
        const uint64_t values = uint64_t{d->valueHeads} * d->valueLength;
        atLeast(mixed, values);
        // The projections, and behind the convolution both vectors of every key head with their products within the chunk.
        atLeast(deltaNet, d->convolutionWidth() + 3 * values + 3 * uint64_t{d->valueHeads} + 2 * uint64_t{d->keyHeads} * (d->keyLength + kv::StateChunk));
      }
      atLeast(feedForward, layer.feedForward);
      if (layer.feedForward && layer.experts) atLeast(sides, config.width);
      // Every row once per expert that it uses, the hidden values with their gates, and the router's logits.
      if (const auto& e = layer.experts) atLeast(experts, uint64_t{e->used} * (config.width + 2 * uint64_t{e->width}) + 2 * uint64_t{e->sharedWidth} + e->count);
    }
    if (config.sandwichNorms || sides || config.perLayerWidth) branch = config.width;
    perLayer = uint64_t{config.perLayerWidth} * config.layers.size();
    perLayerGate = config.perLayerWidth;
  }
};

} // namespace

Result<Forward> Forward::create(const Config& config, const Weights& weights, Backend& backend) {
  Forward forward(config, weights, backend);
  const Widths widths(config);
  const std::pair<Buffer Forward::*, uint64_t> buffers[] = {
      {&Forward::residual_, config.width},
      {&Forward::normed_, config.width},
      {&Forward::query_, widths.query},
      {&Forward::key_, widths.key},
      {&Forward::value_, widths.value},
      {&Forward::attentionGate_, widths.attentionGate},
      {&Forward::mixed_, widths.mixed},
      {&Forward::gate_, widths.feedForward},
      {&Forward::up_, widths.feedForward},
      {&Forward::branch_, widths.branch},
      {&Forward::experts_, widths.sides},
      {&Forward::router_, widths.sides},
      {&Forward::perLayer_, widths.perLayer},
      {&Forward::perLayerGate_, widths.perLayerGate},
  };
  for (const auto& [member, width] : buffers) {
    const auto buffer = backend.allocate(static_cast<uint32_t>(width));
    if (!buffer) return buffer.error();
    forward.*member = *buffer;
  }
  return forward;
}

uint64_t Forward::valuesPerRow(const Config& config) {
  const Widths w(config);
  return 2 * uint64_t{config.width} + w.query + w.key + w.value + w.attentionGate + w.mixed + 2 * w.feedForward + w.branch + 2 * w.sides + w.experts + w.deltaNet + w.perLayer +
         w.perLayerGate;
}

Result<std::span<const float>> Forward::run(const Batch& batch, std::span<const uint32_t> wanted) {
  uint32_t rows = static_cast<uint32_t>(batch.tokens.size());
  backend_.begin(batch);
  embed(rows);
  const auto layers = static_cast<uint32_t>(config_.layers.size());
  for (uint32_t layer = 0; layer < layers; ++layer) {
    mix(layer, rows);
    if (layer + 1 == layers && wanted.size() < rows) {
      // Behind the last layer's mixer nothing looks at the other rows any more.
      if (wanted.empty()) return std::span<const float>();
      backend_.selectRows(wanted, mixed_, mixed_);
      backend_.selectRows(wanted, residual_, residual_);
      if (config_.perLayerWidth) backend_.selectRows(wanted, perLayer_, perLayer_);
      rows = static_cast<uint32_t>(wanted.size());
    }
    mixed(layer, rows);
    feedForward(layer, rows);
    if (config_.perLayerWidth) perLayer(layer, rows);
  }
  backend_.rmsNorm(rows, residual_, weights_.outputNorm, config_.epsilon, normed_);
  return backend_.logits(rows, normed_, weights_.output.into({}), config_.logitSoftcap, config_.tokens);
}

void Forward::embed(uint32_t rows) {
  backend_.embed(weights_.embedding, config_.embeddingScale, residual_);
  if (!config_.perLayerWidth) return;
  PlacedLinear projection = weights_.perLayerProjection;
  projection.scale /= std::sqrt(static_cast<float>(config_.width));
  backend_.project(rows, residual_, std::array{projection.into(perLayer_)});
  backend_.perLayerEmbeddings({perLayer_, weights_.perLayerNorm, weights_.perLayerEmbedding, config_.epsilon,
                               std::sqrt(static_cast<float>(config_.perLayerWidth)), std::sqrt(0.5f)});
}

void Forward::mix(uint32_t layer, uint32_t rows) {
  const LayerWeights& weights = weights_.layers[layer];
  backend_.rmsNorm(rows, residual_, weights.mixerNorm, config_.epsilon, normed_);
  if (weights.attention)
    attention(layer, rows);
  else
    backend_.deltaNet({*config_.layers[layer].deltaNet, *weights.deltaNet, layer, rows, config_.epsilon, normed_, mixed_});
}

void Forward::attention(uint32_t layer, uint32_t rows) {
  const Attention& attention = *config_.layers[layer].attention;
  const AttentionWeights& weights = *weights_.layers[layer].attention;
  std::array<Projection, 4> projections;
  size_t count = 0;
  projections[count++] = weights.query.into(query_);
  if (attention.ownsCache()) projections[count++] = weights.key.into(key_);
  if (attention.ownsCache() && !attention.valueIsKey) projections[count++] = weights.value.into(value_);
  if (weights.gate.weight != Weight::None) projections[count++] = weights.gate.into(attentionGate_);
  backend_.project(rows, normed_, std::span(projections).first(count));
  backend_.attend({layer, attention, query_, key_, value_, attentionGate_, weights.queryNorm, weights.keyNorm, weights.sinks, config_.epsilon, mixed_});
}

/// The mixer's output projection and sum.
void Forward::mixed(uint32_t layer, uint32_t rows) {
  const LayerWeights& weights = weights_.layers[layer];
  const PlacedLinear& output = weights.attention ? weights.attention->output : weights.deltaNet->output;
  if (weights.mixerAfter == Weight::None) return backend_.project(rows, mixed_, std::array{output.addedTo(residual_)});
  backend_.project(rows, mixed_, std::array{output.into(branch_)});
  backend_.addNormed(rows, branch_, weights.mixerAfter, config_.epsilon, 1, residual_);
}

void Forward::feedForward(uint32_t layer, uint32_t rows) {
  const LayerWeights& weights = weights_.layers[layer];
  const bool normed = weights.feedForwardAfter != Weight::None;
  const Buffer out = normed ? branch_ : residual_;
  backend_.rmsNorm(rows, residual_, weights.feedForwardNorm, config_.epsilon, normed_);
  if (weights.feedForward && weights.experts)
    sideBySide(layer, rows);
  else if (weights.experts)
    backend_.experts({*config_.layers[layer].experts, *weights.experts, rows, normed_, normed_, out, !normed});
  else
    dense(layer, rows, out, !normed);
  if (normed) backend_.addNormed(rows, branch_, weights.feedForwardAfter, config_.epsilon, config_.perLayerWidth ? 1 : weights.scale, residual_);
}

void Forward::dense(uint32_t layer, uint32_t rows, Buffer out, bool add) {
  const FeedForwardWeights& weights = *weights_.layers[layer].feedForward;
  backend_.projectGated(rows, normed_, config_.layers[layer].activation, weights.gate.into(gate_), weights.up.into(up_));
  backend_.project(rows, gate_, std::array{add ? weights.down.addedTo(out) : weights.down.into(out)});
}

/// branch = norm(dense) + norm(experts), both of the residual stream with norms of their own.
void Forward::sideBySide(uint32_t layer, uint32_t rows) {
  const LayerWeights& weights = weights_.layers[layer];
  const SideBySideWeights& norms = weights.sideBySide;
  dense(layer, rows, branch_, false);
  backend_.rmsNorm(rows, branch_, norms.denseAfter, config_.epsilon, branch_);
  backend_.rmsNorm(rows, residual_, norms.router, config_.epsilon, router_, 1 / std::sqrt(static_cast<float>(config_.width)));
  backend_.rmsNorm(rows, residual_, norms.expertsBefore, config_.epsilon, normed_);
  backend_.experts({*config_.layers[layer].experts, *weights.experts, rows, normed_, router_, experts_, false});
  backend_.addNormed(rows, experts_, norms.expertsAfter, config_.epsilon, 1, branch_);
}

void Forward::perLayer(uint32_t layer, uint32_t rows) {
  const PerLayerWeights& weights = *weights_.layers[layer].perLayer;
  backend_.project(rows, residual_, std::array{weights.gate.into(perLayerGate_)});
  backend_.multiplyGated(rows, perLayerGate_, config_.layers[layer].activation, perLayer_, layer * config_.perLayerWidth);
  backend_.project(rows, perLayerGate_, std::array{weights.projection.into(branch_)});
  backend_.addNormed(rows, branch_, weights.norm, config_.epsilon, weights_.layers[layer].scale, residual_);
}

} // namespace mashbox::model
