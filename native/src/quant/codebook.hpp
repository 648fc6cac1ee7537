#pragma once

#include <cstdint>

/// Tables of formats whose four-bit codes are indices.
namespace mashbox::quant {

/// IQ4_NL and IQ4_XS
inline constexpr int8_t NonlinearValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// MXFP4 and NVFP4: E2M1 values, doubled so that they are whole.
inline constexpr int8_t DoubledE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

} // namespace mashbox::quant
