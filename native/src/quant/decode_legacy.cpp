#include "quant/blocks.hpp"

// Blocks of 32 values: low nibbles are values 0 … 15, high nibbles 16 … 31, fifth bits lie in one 32-bit word.
namespace mashbox::quant {

void decodeQ4_0(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 18, out += 32) {
    const float d = loadHalf(block);
    for (size_t i = 0; i < 16; ++i) {
      out[i] = d * float((block[2 + i] & 15) - 8);
      out[i + 16] = d * float((block[2 + i] >> 4) - 8);
    }
  }
}

void decodeQ4_1(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 20, out += 32) {
    const float d = loadHalf(block), m = loadHalf(block + 2);
    for (size_t i = 0; i < 16; ++i) {
      out[i] = d * float(block[4 + i] & 15) + m;
      out[i + 16] = d * float(block[4 + i] >> 4) + m;
    }
  }
}

void decodeQ5_0(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 22, out += 32) {
    const float d = loadHalf(block);
    const uint32_t fifth = loadU32(block + 2);
    for (size_t i = 0; i < 16; ++i) {
      out[i] = d * float(int((block[6 + i] & 15) | (fifth >> i & 1) << 4) - 16);
      out[i + 16] = d * float(int(block[6 + i] >> 4 | (fifth >> (i + 16) & 1) << 4) - 16);
    }
  }
}

void decodeQ5_1(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 24, out += 32) {
    const float d = loadHalf(block), m = loadHalf(block + 2);
    const uint32_t fifth = loadU32(block + 4);
    for (size_t i = 0; i < 16; ++i) {
      out[i] = d * float((block[8 + i] & 15) | (fifth >> i & 1) << 4) + m;
      out[i + 16] = d * float(block[8 + i] >> 4 | (fifth >> (i + 16) & 1) << 4) + m;
    }
  }
}

void decodeQ8_0(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 34, out += 32) {
    const float d = loadHalf(block);
    for (size_t i = 0; i < 32; ++i) out[i] = d * float(int8_t(block[2 + i]));
  }
}

} // namespace mashbox::quant
