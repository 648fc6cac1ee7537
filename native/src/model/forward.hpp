#pragma once

#include "model/backend.hpp"
#include "model/weights.hpp"

#include <span>
#include <vector>

namespace mashbox::model {

/// The forward pass of every family over one backend: what differs between families are flags of `Config` and absent weights.
class Forward {
public:
  static Result<Forward> create(const Config& config, const Weights& weights, Backend& backend);

  /// Runs the batch. `wanted` names, rising, the rows whose logits are returned: config.vocabulary values each, valid until the next run.
  Result<std::span<const float>> run(const Batch& batch, std::span<const uint32_t> wanted);

  /// Float32 values of all buffers per row.
  static uint64_t valuesPerRow(const Config& config);

private:
  Forward(const Config& config, const Weights& weights, Backend& backend) : config_(config), weights_(weights), backend_(backend) {}
  void embed(uint32_t rows);
  void mix(uint32_t layer, uint32_t rows);
  void attention(uint32_t layer, uint32_t rows);
  void mixed(uint32_t layer, uint32_t rows);
  void feedForward(uint32_t layer, uint32_t rows);
  void dense(uint32_t layer, uint32_t rows, Buffer out, bool add);
  void sideBySide(uint32_t layer, uint32_t rows);
  void perLayer(uint32_t layer, uint32_t rows);

  const Config& config_;
  const Weights& weights_;
  Backend& backend_;
  Buffer residual_{}, normed_{}, query_{}, key_{}, value_{}, attentionGate_{}, mixed_{}, gate_{}, up_{};
  Buffer branch_{}, experts_{}, router_{}; ///< where sums are normed, or a feed-forward has two sides
  Buffer perLayer_{}, perLayerGate_{};
};

} // namespace mashbox::model
