#include "quant/blocks.hpp"

// Super-blocks of 256 values with quantized sub-block scales.
namespace mashbox::quant {

void decodeQ2_K(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 84, out += 256) {
    const float d = loadHalf(block + 80), dmin = loadHalf(block + 82);
    for (size_t j = 0; j < 16; ++j) {
      const float scale = d * float(block[j] & 15), min = dmin * float(block[j] >> 4);
      const uint8_t* codes = block + 16 + 32 * (j / 8) + 16 * (j % 2);
      const unsigned shift = 2 * (j % 8 / 2);
      for (size_t i = 0; i < 16; ++i) out[16 * j + i] = scale * float(codes[i] >> shift & 3) - min;
    }
  }
}

void decodeQ3_K(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 110, out += 256) {
    const float d = loadHalf(block + 108);
    for (size_t j = 0; j < 16; ++j) {
      const float scale = d * float(unpackSixBits(block + 96, j) - 32);
      const uint8_t* codes = block + 32 + 32 * (j / 8) + 16 * (j % 2);
      const uint8_t* high = block + 16 * (j % 2);
      const unsigned shift = 2 * (j % 8 / 2), highShift = unsigned(j / 2);
      for (size_t i = 0; i < 16; ++i)
        out[16 * j + i] = scale * float((codes[i] >> shift & 3) - ((high[i] >> highShift & 1) ? 0 : 4));
    }
  }
}

void decodeQ4_K(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 144, out += 256) {
    const float d = loadHalf(block), dmin = loadHalf(block + 2);
    for (size_t s = 0; s < 8; ++s) {
      const ScaleMin packed = unpackScaleMin(block + 4, s);
      const float scale = d * float(packed.scale), min = dmin * float(packed.min);
      const uint8_t* codes = block + 16 + 32 * (s / 2);
      const unsigned shift = 4 * (s % 2);
      for (size_t i = 0; i < 32; ++i) out[32 * s + i] = scale * float(codes[i] >> shift & 15) - min;
    }
  }
}

void decodeQ5_K(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 176, out += 256) {
    const float d = loadHalf(block), dmin = loadHalf(block + 2);
    const uint8_t* fifth = block + 16;
    for (size_t s = 0; s < 8; ++s) {
      const ScaleMin packed = unpackScaleMin(block + 4, s);
      const float scale = d * float(packed.scale), min = dmin * float(packed.min);
      const uint8_t* codes = block + 48 + 32 * (s / 2);
      const unsigned shift = 4 * (s % 2);
      for (size_t i = 0; i < 32; ++i)
        out[32 * s + i] = scale * float((codes[i] >> shift & 15) | (fifth[i] >> s & 1) << 4) - min;
    }
  }
}

void decodeQ6_K(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 210, out += 256) {
    const float d = loadHalf(block + 208);
    for (size_t j = 0; j < 16; ++j) {
      const float scale = d * float(int8_t(block[192 + j]));
      const size_t half = j / 8, r = j % 8;
      const uint8_t* low = block + 64 * half + 16 * (r % 4);
      const uint8_t* high = block + 128 + 32 * half + 16 * (r % 2);
      const unsigned lowShift = unsigned(4 * (r / 4)), highShift = unsigned(2 * (r / 2));
      for (size_t i = 0; i < 16; ++i)
        out[16 * j + i] = scale * float(((low[i] >> lowShift & 15) | (high[i] >> highShift & 3) << 4) - 32);
    }
  }
}

} // namespace mashbox::quant
