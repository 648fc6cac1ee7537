#include "model/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mashbox::model {
namespace {

/// YaRN's weight of the unstretched frequency for every pair: 1 for fast ones, 0 for slow ones, a ramp between them.
class YarnRamp {
public:
  explicit YarnRamp(const Rope& rope) {
    const auto pairOf = [&](double beta) {
      return rope.dims * std::log(rope.originalContext / (beta * 2 * std::numbers::pi)) / (2 * std::log(rope.base));
    };
    const double low = pairOf(rope.betaFast), high = pairOf(rope.betaSlow);
    low_ = std::clamp(rope.wholePairs ? std::floor(low) : low, 0.0, rope.dims - 1.0);
    high_ = std::clamp(rope.wholePairs ? std::ceil(high) : high, 0.0, rope.dims - 1.0);
  }
  double at(uint32_t pair) const { return 1 - std::clamp((pair - low_) / std::max(0.001, high_ - low_), 0.0, 1.0); }

private:
  double low_, high_;
};

} // namespace

Rotation rotationOf(const Rope& rope, std::span<const float> ropeFreqs) {
  const std::span<const float> factors = rope.factors ? ropeFreqs : std::span<const float>();
  Rotation out{rope.pairing, {}, 1};
  const YarnRamp ramp(rope);
  for (uint32_t i = 0; i < rope.dims / 2; ++i) {
    const double plain = std::pow(rope.base, -2.0 * i / rope.dims) / (factors.empty() ? 1.0 : factors[i]);
    const double keep = rope.scaling == RopeScaling::None ? 1 : rope.scaling == RopeScaling::Linear ? 0 : ramp.at(i);
    out.frequencies.push_back(plain / rope.factor * (1 - keep) + plain * keep);
  }
  if (rope.scaling == RopeScaling::Yarn) out.magnitude = rope.attentionFactor * (0.1 * std::log(rope.factor) + 1);
  return out;
}

} // namespace mashbox::model
