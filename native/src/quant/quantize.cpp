#include "quant/quantize.hpp"

#include "quant/blocks.hpp"

#include <algorithm>
#include <cmath>

namespace mashbox::quant {
namespace {

void encodeF32(const float* values, size_t count, uint8_t* out) {
  if (count != 0) std::memcpy(out, values, count * sizeof(float));
}

void encodeF16(const float* values, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) storeU16(out + 2 * i, floatToHalf(values[i]));
}

void encodeBF16(const float* values, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) storeU16(out + 2 * i, floatToBfloat16(values[i]));
}

/// 0 for 0 and for what is too small to invert.
float inverse(float scale) {
  const float result = 1 / scale;
  return std::isfinite(result) ? result : 0;
}

/// The value with the largest magnitude, with its sign.
float signedMax(const float* values, size_t count) {
  return *std::max_element(values, values + count, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

void encodeQ8_0(const float* x, size_t count, uint8_t* block) {
  for (; count > 0; --count, x += 32, block += 34) {
    const float d = std::fabs(signedMax(x, 32)) / 127, scale = inverse(d);
    storeHalf(block, d);
    for (size_t i = 0; i < 32; ++i) block[2 + i] = uint8_t(int8_t(std::lround(x[i] * scale)));
  }
}

/// Codes of a 32-value block: four bits packed as low and high halves, the fifth bits in `fifth`.
template <class Code> uint32_t packCodes(uint8_t* nibbles, Code code) {
  uint32_t fifth = 0;
  for (size_t i = 0; i < 16; ++i) {
    const uint32_t low = code(i), high = code(i + 16);
    nibbles[i] = uint8_t((low & 15) | (high & 15) << 4);
    fifth |= low >> 4 << i | high >> 4 << (i + 16);
  }
  return fifth;
}

/// Q4_0 and Q5_0: the value of largest magnitude gets code 0, zero the middle one.
template <int Bits> void encodeSymmetric(const float* x, size_t count, uint8_t* block) {
  constexpr float middle = 1 << (Bits - 1);
  constexpr int largest = (1 << Bits) - 1;
  constexpr size_t header = Bits == 5 ? 6 : 2;
  for (; count > 0; --count, x += 32, block += header + 16) {
    const float d = signedMax(x, 32) / -middle, scale = inverse(d);
    storeHalf(block, d);
    const uint32_t fifth =
      packCodes(block + header, [&](size_t i) { return uint32_t(std::min(largest, int(x[i] * scale + middle + 0.5f))); });
    if constexpr (Bits == 5) std::memcpy(block + 2, &fifth, sizeof fifth);
  }
}

/// Q4_1 and Q5_1: the smallest value gets code 0, the largest the last one.
template <int Bits> void encodeAffine(const float* x, size_t count, uint8_t* block) {
  constexpr int largest = (1 << Bits) - 1;
  constexpr size_t header = Bits == 5 ? 8 : 4;
  for (; count > 0; --count, x += 32, block += header + 16) {
    const auto [min, max] = std::minmax_element(x, x + 32);
    const float m = *min, d = (*max - m) / largest, scale = inverse(d);
    storeHalf(block, d);
    storeHalf(block + 2, m);
    const uint32_t fifth =
      packCodes(block + header, [&](size_t i) { return uint32_t(std::min(largest, int((x[i] - m) * scale + 0.5f))); });
    if constexpr (Bits == 5) std::memcpy(block + 4, &fifth, sizeof fifth);
  }
}

EncodeBlocks findEncoder(Type type) {
  switch (type) {
    case Type::F32: return encodeF32;
    case Type::F16: return encodeF16;
    case Type::BF16: return encodeBF16;
    case Type::Q8_0: return encodeQ8_0;
    case Type::Q4_0: return encodeSymmetric<4>;
    case Type::Q5_0: return encodeSymmetric<5>;
    case Type::Q4_1: return encodeAffine<4>;
    case Type::Q5_1: return encodeAffine<5>;
    case Type::Q4_K: return encodeQ4_K;
    case Type::Q5_K: return encodeQ5_K;
    case Type::Q6_K: return encodeQ6_K;
    default: return nullptr;
  }
}

} // namespace

bool encodable(Type type) { return findEncoder(type) != nullptr; }

void quantize(Type type, std::span<const float> values, std::byte* blocks) {
  findEncoder(type)(values.data(), values.size() / format(type).blockLength, reinterpret_cast<uint8_t*>(blocks));
}

} // namespace mashbox::quant
