#include "quant/blocks.hpp"

#include <algorithm>
#include <cmath>

namespace mashbox::quant {
namespace {

uint8_t roundTo(float value, int largest) { return uint8_t(std::clamp(int(std::lround(value)), 0, largest)); }

/// The part that Q4_K and Q5_K share: writes d, dmin and the packed scales to the block's first 16 bytes and the codes to `codes`.
void encodeScaled(const float* x, int largest, uint8_t* block, uint8_t (&codes)[256]) {
  float scale[8], min[8];
  for (size_t s = 0; s < 8; ++s) {
    const auto [low, high] = std::minmax_element(x + 32 * s, x + 32 * s + 32);
    min[s] = std::max(0.0f, -*low);
    scale[s] = std::max(0.0f, *high + min[s]) / float(largest);
  }
  const float d = storeHalf(block, *std::max_element(scale, scale + 8) / 63);
  const float dmin = storeHalf(block + 2, *std::max_element(min, min + 8) / 63);
  std::fill(block + 4, block + 16, uint8_t(0));
  for (size_t s = 0; s < 8; ++s) {
    const ScaleMin packed{roundTo(d != 0 ? scale[s] / d : 0, 63), roundTo(dmin != 0 ? min[s] / dmin : 0, 63)};
    packScaleMin(block + 4, s, packed);
    const float step = d * float(packed.scale), offset = dmin * float(packed.min);
    for (size_t i = 0; i < 32; ++i) codes[32 * s + i] = step != 0 ? roundTo((x[32 * s + i] + offset) / step, largest) : 0;
  }
}

/// Low four bits: sub-blocks 2p and 2p + 1 share 32 bytes.
void packNibblePairs(const uint8_t (&codes)[256], uint8_t* out) {
  for (size_t p = 0; p < 4; ++p)
    for (size_t i = 0; i < 32; ++i) out[32 * p + i] = uint8_t((codes[64 * p + i] & 15) | (codes[64 * p + 32 + i] & 15) << 4);
}

} // namespace

void encodeQ4_K(const float* x, size_t count, uint8_t* block) {
  uint8_t codes[256];
  for (; count > 0; --count, x += 256, block += 144) {
    encodeScaled(x, 15, block, codes);
    packNibblePairs(codes, block + 16);
  }
}

void encodeQ5_K(const float* x, size_t count, uint8_t* block) {
  uint8_t codes[256];
  for (; count > 0; --count, x += 256, block += 176) {
    encodeScaled(x, 31, block, codes);
    packNibblePairs(codes, block + 48);
    std::fill(block + 16, block + 48, uint8_t(0));
    for (size_t i = 0; i < 256; ++i) block[16 + i % 32] = uint8_t(block[16 + i % 32] | codes[i] >> 4 << i / 32);
  }
}

void encodeQ6_K(const float* x, size_t count, uint8_t* block) {
  for (; count > 0; --count, x += 256, block += 210) {
    float scale[16], largest = 0;
    for (size_t j = 0; j < 16; ++j) {
      const float* values = x + 16 * j;
      const float extreme = *std::max_element(values, values + 16, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
      scale[j] = extreme / -32;
      if (std::fabs(scale[j]) > std::fabs(largest)) largest = scale[j];
    }
    const float d = storeHalf(block + 208, largest / -128);
    std::fill(block, block + 192, uint8_t(0));
    for (size_t j = 0; j < 16; ++j) {
      const int sub = d != 0 ? std::clamp(int(std::lround(scale[j] / d)), -128, 127) : 0;
      block[192 + j] = uint8_t(int8_t(sub));
      const float step = d * float(sub);
      const size_t half = j / 8, r = j % 8;
      for (size_t i = 0; i < 16; ++i) {
        const int code = step != 0 ? std::clamp(int(std::lround(x[16 * j + i] / step)), -32, 31) + 32 : 32;
        uint8_t& low = block[64 * half + 16 * (r % 4) + i];
        uint8_t& high = block[128 + 32 * half + 16 * (r % 2) + i];
        low = uint8_t(low | (code & 15) << 4 * (r / 4));
        high = uint8_t(high | code >> 4 << 2 * (r / 2));
      }
    }
  }
}

} // namespace mashbox::quant
