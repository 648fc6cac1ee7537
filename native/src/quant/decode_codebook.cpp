#include "quant/blocks.hpp"
#include "quant/codebook.hpp"

// Four-bit codes that index a table of 16 values.
namespace mashbox::quant {
namespace {

template <size_t Half> void decodeCodes(const uint8_t* codes, const int8_t (&table)[16], float scale, float* out) {
  for (size_t i = 0; i < Half; ++i) {
    out[i] = scale * float(table[codes[i] & 15]);
    out[i + Half] = scale * float(table[codes[i] >> 4]);
  }
}

} // namespace

void decodeIQ4_NL(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 18, out += 32) decodeCodes<16>(block + 2, NonlinearValues, loadHalf(block), out);
}

void decodeIQ4_XS(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 136, out += 256) {
    const float d = loadHalf(block);
    const unsigned high = loadU16(block + 2);
    for (size_t s = 0; s < 8; ++s) {
      const unsigned low = block[4 + s / 2] >> 4 * (s % 2) & 15;
      const int scale = int(low | (high >> 2 * s & 3) << 4) - 32;
      decodeCodes<16>(block + 8 + 16 * s, NonlinearValues, d * float(scale), out + 32 * s);
    }
  }
}

void decodeMXFP4(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 17, out += 32) decodeCodes<16>(block + 1, DoubledE2M1, halvedE8M0(block[0]), out);
}

void decodeNVFP4(const uint8_t* block, size_t count, float* out) {
  for (; count > 0; --count, block += 36, out += 64)
    for (size_t s = 0; s < 4; ++s) decodeCodes<8>(block + 4 + 8 * s, DoubledE2M1, halvedUE4M3(block[s]), out + 16 * s);
}

} // namespace mashbox::quant
