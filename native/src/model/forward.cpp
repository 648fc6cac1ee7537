#include "model/forward.hpp"

#include <array>
#include <utility>

namespace mashbox::model {

Result<Forward> Forward::create(const Config& config, const Weights& weights, Backend& backend) {
  Forward forward(config, weights, backend);
  const std::pair<Buffer Forward::*, uint32_t> buffers[] = {
      {&Forward::residual_, config.width},
      {&Forward::normed_, config.width},
      {&Forward::query_, config.heads * config.keyLength},
      {&Forward::key_, config.kvHeads * config.keyLength},
      {&Forward::value_, config.kvHeads * config.valueLength},
      {&Forward::attended_, config.heads * config.valueLength},
      {&Forward::gate_, config.feedForward},
      {&Forward::up_, config.feedForward},
  };
  for (const auto& [member, width] : buffers) {
    const auto buffer = backend.allocate(width);
    if (!buffer) return buffer.error();
    forward.*member = *buffer;
  }
  return forward;
}

uint64_t Forward::valuesPerRow(const Config& c) {
  return 2 * uint64_t{c.width} + 2 * uint64_t{c.feedForward} + uint64_t{c.heads + c.kvHeads} * (c.keyLength + c.valueLength);
}

Result<std::span<const float>> Forward::run(const Batch& batch, std::span<const uint32_t> wanted) {
  uint32_t rows = static_cast<uint32_t>(batch.tokens.size());
  backend_.begin(batch);
  backend_.embed(weights_.embedding, residual_);
  for (uint32_t layer = 0; layer < config_.layers; ++layer) {
    attention(layer, rows);
    if (layer + 1 == config_.layers && wanted.size() < rows) {
      // Behind the last layer's cache nothing looks at the other rows any more.
      if (wanted.empty()) return std::span<const float>();
      backend_.selectRows(wanted, attended_, attended_);
      backend_.selectRows(wanted, residual_, residual_);
      rows = static_cast<uint32_t>(wanted.size());
    }
    backend_.project(rows, attended_, std::array{weights_.layers[layer].attentionOutput.addedTo(residual_)});
    feedForward(layer, rows);
  }
  backend_.rmsNorm(rows, residual_, weights_.outputNorm, config_.epsilon, normed_);
  return backend_.logits(rows, normed_, weights_.output.into({}), config_.tokens);
}

void Forward::attention(uint32_t layer, uint32_t rows) {
  const LayerWeights& weights = weights_.layers[layer];
  backend_.rmsNorm(rows, residual_, weights.attentionNorm, config_.epsilon, normed_);
  backend_.project(rows, normed_, std::array{weights.query.into(query_), weights.key.into(key_), weights.value.into(value_)});
  backend_.attend({layer, query_, key_, value_, weights.queryNorm, weights.keyNorm, config_.epsilon, config_.attentionScale, attended_});
}

void Forward::feedForward(uint32_t layer, uint32_t rows) {
  const LayerWeights& weights = weights_.layers[layer];
  backend_.rmsNorm(rows, residual_, weights.feedForwardNorm, config_.epsilon, normed_);
  backend_.projectGated(rows, normed_, weights.gate.into(gate_), weights.up.into(up_));
  backend_.project(rows, gate_, std::array{weights.down.addedTo(residual_)});
}

} // namespace mashbox::model
