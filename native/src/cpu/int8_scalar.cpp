#include "cpu/int8_scalar.hpp"

#include "quant/blocks.hpp"
#include "quant/codebook.hpp"

#include <algorithm>

namespace mashbox::cpu::scalar {
namespace {

using quant::loadHalf;
using quant::loadU32;

/// A weight row taken apart: w[k] = scale[k/32] · factor[k/16] · code[k] + min[k/32] · minFactor[k/16].
struct DecodedRow {
  int8_t* code;      ///< K, signed (the format's offset is already taken off)
  int8_t* factor;    ///< K/16: 1 but for Q2_K, Q3_K and Q6_K
  int8_t* minFactor; ///< K/16: 1 but for Q2_K
  float* scale;      ///< K/32; of the first half of each block where `second` is set
  float* second;     ///< K/32: of the second halves; null where a block has one scale
  float* min;        ///< K/32: 0 for formats without a minimum

  static size_t bytes(size_t length) { return length + 2 * (length / 16) + 3 * sizeof(float) * (length / 32) + 64; }

  DecodedRow(std::byte* memory, size_t length, bool halves) {
    scale = reinterpret_cast<float*>(memory);
    min = scale + length / 32;
    second = halves ? min + length / 32 : nullptr;
    code = reinterpret_cast<int8_t*>(min + 2 * (length / 32));
    factor = code + length;
    minFactor = factor + length / 16;
    std::fill_n(factor, 2 * (length / 16), int8_t{1});
    std::fill_n(min, length / 32, 0.0f);
  }
};

/// The codes of a 32-value block of nibbles: low ones first, then high ones; bit i of `fifth` is the fifth bit of value i.
void unpackNibbles(const uint8_t* nibbles, uint32_t fifth, int offset, int8_t* code) {
  for (unsigned i = 0; i < 16; ++i) {
    code[i] = int8_t(int((nibbles[i] & 15) | (fifth >> i & 1) << 4) - offset);
    code[i + 16] = int8_t(int(nibbles[i] >> 4 | (fifth >> (i + 16) & 1) << 4) - offset);
  }
}

void decodeLegacy(Type type, const uint8_t* block, size_t blocks, const DecodedRow& row) {
  const size_t blockBytes = quant::format(type).blockBytes;
  const bool hasMin = type == Type::Q4_1 || type == Type::Q5_1;
  for (size_t b = 0; b < blocks; ++b, block += blockBytes) {
    row.scale[b] = loadHalf(block);
    if (hasMin) row.min[b] = loadHalf(block + 2);
    int8_t* code = row.code + 32 * b;
    switch (type) {
    case Type::Q4_0: unpackNibbles(block + 2, 0, 8, code); break;
    case Type::Q4_1: unpackNibbles(block + 4, 0, 0, code); break;
    case Type::Q5_0: unpackNibbles(block + 6, loadU32(block + 2), 16, code); break;
    case Type::Q5_1: unpackNibbles(block + 8, loadU32(block + 4), 0, code); break;
    default: std::copy_n(reinterpret_cast<const int8_t*>(block + 2), 32, code);
    }
  }
}

void decodeQ45K(Type type, const uint8_t* block, size_t supers, const DecodedRow& row) {
  const bool five = type == Type::Q5_K;
  for (size_t n = 0; n < supers; ++n, block += five ? 176 : 144) {
    const float d = loadHalf(block), dmin = loadHalf(block + 2);
    const uint8_t *fifth = block + 16, *nibbles = block + (five ? 48 : 16);
    for (size_t s = 0; s < 8; ++s) {
      const quant::ScaleMin packed = quant::unpackScaleMin(block + 4, s);
      row.scale[8 * n + s] = d * float(packed.scale);
      row.min[8 * n + s] = -(dmin * float(packed.min));
      int8_t* code = row.code + 256 * n + 32 * s;
      for (size_t i = 0; i < 32; ++i)
        code[i] = int8_t((nibbles[32 * (s / 2) + i] >> 4 * (s % 2) & 15) | (five ? (fifth[i] >> s & 1) << 4 : 0));
    }
  }
}

void decodeQ2K(const uint8_t* block, size_t supers, const DecodedRow& row) {
  for (size_t n = 0; n < supers; ++n, block += 84) {
    std::fill_n(row.scale + 8 * n, 8, loadHalf(block + 80));
    std::fill_n(row.min + 8 * n, 8, -loadHalf(block + 82));
    for (size_t j = 0; j < 16; ++j) {
      row.factor[16 * n + j] = int8_t(block[j] & 15);
      row.minFactor[16 * n + j] = int8_t(block[j] >> 4);
    }
    for (size_t i = 0; i < 256; ++i) row.code[256 * n + i] = int8_t(block[16 + 32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3);
  }
}

void decodeQ3K(const uint8_t* block, size_t supers, const DecodedRow& row) {
  for (size_t n = 0; n < supers; ++n, block += 110) {
    std::fill_n(row.scale + 8 * n, 8, loadHalf(block + 108));
    for (size_t j = 0; j < 16; ++j) row.factor[16 * n + j] = int8_t(quant::unpackSixBits(block + 96, j) - 32);
    for (size_t i = 0; i < 256; ++i) {
      const int low = block[32 + 32 * (i / 128) + i % 32] >> 2 * (i % 128 / 32) & 3, high = block[i % 32] >> (i / 32) & 1;
      row.code[256 * n + i] = int8_t((low | high << 2) - 4);
    }
  }
}

void decodeQ6K(const uint8_t* block, size_t supers, const DecodedRow& row) {
  for (size_t n = 0; n < supers; ++n, block += 210) {
    const float d = loadHalf(block + 208);
    std::copy_n(reinterpret_cast<const int8_t*>(block + 192), 16, row.factor + 16 * n);
    std::fill_n(row.scale + 8 * n, 8, d);
    for (size_t i = 0; i < 256; ++i) {
      const size_t half = i / 128, r = i % 128;
      const int low = block[64 * half + r % 64] >> 4 * (r / 64) & 15;
      const int high = block[128 + 32 * half + r % 32] >> 2 * (r / 32) & 3;
      row.code[256 * n + i] = int8_t((low | high << 4) - 32);
    }
  }
}

/// The values that a 32-value block's nibbles index.
void lookUp(const uint8_t* nibbles, const int8_t (&table)[16], int8_t* code) {
  for (unsigned i = 0; i < 16; ++i) {
    code[i] = table[nibbles[i] & 15];
    code[i + 16] = table[nibbles[i] >> 4];
  }
}

void decodeIQ4NL(const uint8_t* block, size_t blocks, const DecodedRow& row) {
  for (size_t b = 0; b < blocks; ++b, block += 18) {
    row.scale[b] = loadHalf(block);
    lookUp(block + 2, quant::NonlinearValues, row.code + 32 * b);
  }
}

void decodeMXFP4(const uint8_t* block, size_t blocks, const DecodedRow& row) {
  for (size_t b = 0; b < blocks; ++b, block += 17) {
    row.scale[b] = quant::halvedE8M0(*block);
    lookUp(block + 1, quant::DoubledE2M1, row.code + 32 * b);
  }
}

void decodeNVFP4(const uint8_t* block, size_t supers, const DecodedRow& row) {
  for (size_t n = 0; n < supers; ++n, block += 36)
    for (size_t s = 0; s < 4; ++s) {
      float* const scales = s % 2 ? row.second : row.scale;
      scales[2 * n + s / 2] = quant::halvedUE4M3(block[s]);
      int8_t* code = row.code + 64 * n + 16 * s;
      for (size_t i = 0; i < 8; ++i) {
        code[i] = quant::DoubledE2M1[block[4 + 8 * s + i] & 15];
        code[i + 8] = quant::DoubledE2M1[block[4 + 8 * s + i] >> 4];
      }
    }
}

void decodeIQ4XS(const uint8_t* block, size_t supers, const DecodedRow& row) {
  for (size_t n = 0; n < supers; ++n, block += 136) {
    const float d = loadHalf(block);
    const unsigned high = quant::loadU16(block + 2);
    for (size_t s = 0; s < 8; ++s) {
      const unsigned low = block[4 + s / 2] >> 4 * (s % 2) & 15;
      row.scale[8 * n + s] = d * float(int(low | (high >> 2 * s & 3) << 4) - 32);
      lookUp(block + 8 + 16 * s, quant::NonlinearValues, row.code + 256 * n + 32 * s);
    }
  }
}

void decode(Type type, const std::byte* bytes, size_t length, const DecodedRow& row) {
  const auto* block = reinterpret_cast<const uint8_t*>(bytes);
  switch (type) {
  case Type::Q4_K:
  case Type::Q5_K: return decodeQ45K(type, block, length / 256, row);
  case Type::Q2_K: return decodeQ2K(block, length / 256, row);
  case Type::Q3_K: return decodeQ3K(block, length / 256, row);
  case Type::Q6_K: return decodeQ6K(block, length / 256, row);
  case Type::IQ4_NL: return decodeIQ4NL(block, length / 32, row);
  case Type::IQ4_XS: return decodeIQ4XS(block, length / 256, row);
  case Type::MXFP4: return decodeMXFP4(block, length / 32, row);
  case Type::NVFP4: return decodeNVFP4(block, length / 64, row);
  default: return decodeLegacy(type, block, length / 32, row);
  }
}

int32_t dot16(const int8_t* a, const int8_t* b) {
  int32_t sum = 0;
  for (unsigned i = 0; i < 16; ++i) sum += int32_t(a[i]) * b[i];
  return sum;
}

float dot(const DecodedRow& row, size_t blocks, const int8_t* q, const float* scale, const int16_t* sum16) {
  float lane[8] = {};
  for (size_t b = 0; b < blocks; ++b) {
    const int32_t first = row.factor[2 * b] * dot16(row.code + 32 * b, q + 32 * b);
    const int32_t second = row.factor[2 * b + 1] * dot16(row.code + 32 * b + 16, q + 32 * b + 16);
    float& acc = lane[b % 8];
    acc += row.scale[b] * scale[b] * float(row.second ? first : first + second);
    if (row.second) acc += row.second[b] * scale[b] * float(second);
    acc += row.min[b] * (scale[b] * float(row.minFactor[2 * b] * sum16[2 * b] + row.minFactor[2 * b + 1] * sum16[2 * b + 1]));
  }
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

} // namespace

void matmulInt8(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  const size_t blocks = x.length / 32;
  const DecodedRow row(threadScratch(DecodedRow::bytes(x.length)), x.length, type == Type::NVFP4);
  for (size_t r = 0; r < rowCount; ++r) {
    decode(type, weights + r * rowBytes, x.length, row);
    for (size_t m = 0; m < x.rows; ++m)
      out[m * outStride + r] = dot(row, blocks, x.q + m * x.length, x.scale + m * blocks, x.sum16 + m * 2 * blocks);
  }
}

} // namespace mashbox::cpu::scalar
