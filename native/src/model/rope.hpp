#pragma once

#include "model/config.hpp"

#include <span>
#include <vector>

namespace mashbox::model {

/// A `Rope` as numbers: pair i turns by position · frequencies[i]; cos and sin are multiplied by `magnitude`.
struct Rotation {
  RopePairing pairing;
  std::vector<double> frequencies; ///< dims / 2
  double magnitude = 1;
};

/// `ropeFreqs`, of rope_freqs.weight, has dims / 2 values or none.
Rotation rotationOf(const Rope& rope, std::span<const float> ropeFreqs);

} // namespace mashbox::model
