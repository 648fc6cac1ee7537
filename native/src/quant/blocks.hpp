#pragma once

#include "base/float16.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

/// What the block codecs of this folder share; formulas and layouts are those of ggml's `ggml-quants.c`.
namespace mashbox::quant {

/// Decodes `count` consecutive blocks.
using DecodeBlocks = void (*)(const uint8_t* blocks, size_t count, float* out);
/// Encodes `count` blocks' worth of values, rounding to nearest.
using EncodeBlocks = void (*)(const float* values, size_t count, uint8_t* blocks);

DecodeBlocks findDecoder(uint32_t id); ///< null where the format cannot be decoded

void decodeF32(const uint8_t*, size_t, float*);
void decodeF16(const uint8_t*, size_t, float*);
void decodeBF16(const uint8_t*, size_t, float*);
void decodeQ4_0(const uint8_t*, size_t, float*);
void decodeQ4_1(const uint8_t*, size_t, float*);
void decodeQ5_0(const uint8_t*, size_t, float*);
void decodeQ5_1(const uint8_t*, size_t, float*);
void decodeQ8_0(const uint8_t*, size_t, float*);
void decodeQ2_K(const uint8_t*, size_t, float*);
void decodeQ3_K(const uint8_t*, size_t, float*);
void decodeQ4_K(const uint8_t*, size_t, float*);
void decodeQ5_K(const uint8_t*, size_t, float*);
void decodeQ6_K(const uint8_t*, size_t, float*);
void decodeIQ4_NL(const uint8_t*, size_t, float*);
void decodeIQ4_XS(const uint8_t*, size_t, float*);
void decodeMXFP4(const uint8_t*, size_t, float*);
void decodeNVFP4(const uint8_t*, size_t, float*);

void encodeQ4_K(const float*, size_t, uint8_t*);
void encodeQ5_K(const float*, size_t, uint8_t*);
void encodeQ6_K(const float*, size_t, uint8_t*);

inline uint16_t loadU16(const uint8_t* at) {
  uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline uint32_t loadU32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline float loadHalf(const uint8_t* at) { return halfToFloat(loadU16(at)); }

/// 2^(e − 128): MXFP4's E8M0 scale, halved because its values are doubled. e = 255 gives 2^127 where the OCP text says NaN, as ggml does.
inline float halvedE8M0(uint8_t e) { return std::bit_cast<float>(e < 2 ? 0x00200000u << e : uint32_t(e - 1) << 23); }

/// NVFP4's UE4M3 scale (E4M3 without a sign and infinities), halved because its values are doubled; 0x7f (NaN in E4M3) reads as 0.
inline float halvedUE4M3(uint8_t bits) {
  if (bits == 0 || bits == 0x7f) return 0;
  const uint32_t exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 0) return float(mantissa) * 0x1p-10f;
  return std::bit_cast<float>((exponent + 119) << 23 | mantissa << 20);
}

/// Scale j of 16 (six bits each) in the 12 packed bytes of Q3_K.
inline int unpackSixBits(const uint8_t* packed, size_t j) { return (packed[j % 8] >> 4 * (j / 8) & 15) | (packed[8 + j % 4] >> 2 * (j / 4) & 3) << 4; }

inline void storeU16(uint8_t* at, uint16_t value) { std::memcpy(at, &value, sizeof value); }
/// Stores the value rounded to half and returns what a reader will see.
inline float storeHalf(uint8_t* at, float value) {
  const uint16_t half = floatToHalf(value);
  storeU16(at, half);
  return halfToFloat(half);
}

struct ScaleMin {
  uint8_t scale, min;
};

/// Scale and minimum (six bits each) of 32-value sub-block `s` in the 12 packed bytes of Q4_K and Q5_K.
inline ScaleMin unpackScaleMin(const uint8_t* packed, size_t s) {
  if (s < 4) return {uint8_t(packed[s] & 63), uint8_t(packed[s + 4] & 63)};
  return {uint8_t((packed[s + 4] & 15) | packed[s - 4] >> 6 << 4), uint8_t(packed[s + 4] >> 4 | packed[s] >> 6 << 4)};
}

inline void packScaleMin(uint8_t* packed, size_t s, ScaleMin value) {
  if (s < 4) {
    packed[s] = uint8_t((packed[s] & 0xc0) | value.scale);
    packed[s + 4] = uint8_t((packed[s + 4] & 0xc0) | value.min);
  } else {
    packed[s + 4] = uint8_t((value.scale & 15) | (value.min & 15) << 4);
    packed[s - 4] = uint8_t((packed[s - 4] & 63) | value.scale >> 4 << 6);
    packed[s] = uint8_t((packed[s] & 63) | value.min >> 4 << 6);
  }
}

} // namespace mashbox::quant
