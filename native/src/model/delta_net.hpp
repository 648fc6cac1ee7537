#pragma once

#include <cstdint>

namespace mashbox::model {

/// Which key head serves value head v: `Tiled` v mod keyHeads, `Grouped` v div (valueHeads / keyHeads).
enum class HeadMap { Tiled, Grouped };

/// Gated DeltaNet, a linear attention with a recurrent state of valueHeads × keyLength × valueLength per sequence.
struct DeltaNet {
  uint32_t keyHeads = 0, valueHeads = 0;
  uint32_t keyLength = 0, valueLength = 0; ///< of one head
  uint32_t convolution = 4;                ///< taps, the current token's included
  HeadMap headMap = HeadMap::Tiled;

  uint32_t convolutionWidth() const { return 2 * keyHeads * keyLength + valueHeads * valueLength; }
};

} // namespace mashbox::model
