#pragma once

#include "cpu/simd_avx512.hpp"
#include "quant/codebook.hpp"

/// Taking weight rows apart, two rows and eight 32-value blocks at a time: lanes 0–7 are the first row's blocks, 8–15 the second's.
namespace mashbox::cpu::avx512 {
namespace {

struct Group {
  __m512i code[8];   ///< block by block: 32 unsigned codes of the first row, then of the second
  __m512 scale, min; ///< per block; `min` only where the format has one
  __m512 second;     ///< scales of the second halves, where those have their own; `scale` is that of the first halves then
  __m512i factors[2];   ///< of the half blocks; blocks 0–3, then 4–7; per row four first halves, then four second halves
  __m512i factors16;    ///< the same as 16-bit words in order
  __m512i minFactors16; ///< of the half blocks' minimums
};

/// What a format's blocks have besides codes and scales, unless it says otherwise.
struct Plain {
  static constexpr bool hasMin = false;
  static constexpr bool hasFactors = false, hasMinFactors = false; ///< of the halves of a block, for its scale and for its minimum
  static constexpr bool hasHalves = false;                         ///< the halves of a block have scales of their own
};

/// Formats of 32-value blocks. `first` is the byte where codes begin; a group may be short (`count` blocks, the rest is zero).
template <size_t Bytes, bool Min, int CodeOffset> struct Legacy : Plain {
  static constexpr bool hasMin = Min;
  static constexpr int offset = CodeOffset; ///< what the unsigned codes are too large by
  static constexpr size_t groupBytes = 8 * Bytes;

  /// The scales (and minimums behind them) of blocks at stride `Bytes`; `second` is where the second row lies from the first.
  static void loadScales(const uint8_t* first, ptrdiff_t second, __mmask8 blocks, Group& group) {
    const __m256i index = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int(Bytes)));
    const __m256i zero = _mm256_setzero_si256();
    const __m256i a = _mm256_mmask_i32gather_epi32(zero, blocks, index, first, 1);
    const __m256i b = _mm256_mmask_i32gather_epi32(zero, blocks, index, first + second, 1);
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
    group.scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(both));
    if constexpr (Min) group.min = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(both, 16)));
  }
};

inline __m512i nibbles(const uint8_t* a, const uint8_t* b) {
  const __m512i shift = _mm512_setr_epi64(0, 0, 4, 4, 0, 0, 4, 4);
  return _mm512_and_si512(_mm512_srlv_epi64(join128Twice(a, b), shift), _mm512_set1_epi8(15));
}

inline __m512i withFifth(__m512i codes, const uint8_t* a, const uint8_t* b) {
  const __mmask64 fifth = uint64_t(loadU32(a)) | uint64_t(loadU32(b)) << 32;
  return _mm512_mask_add_epi8(codes, fifth, codes, _mm512_set1_epi8(16));
}

template <class Format> void loadBlocks(const uint8_t* a, ptrdiff_t second, unsigned count, Group& group) {
  Format::loadScales(a, second, __mmask8((1u << count) - 1), group);
  for (unsigned b = 0; b < count; ++b, a += Format::groupBytes / 8) group.code[b] = Format::codes(a, a + second);
}

struct Q4_0 : Legacy<18, false, 8> {
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return nibbles(a + 2, b + 2); }
};
struct Q4_1 : Legacy<20, true, 0> {
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return nibbles(a + 4, b + 4); }
};
struct Q5_0 : Legacy<22, false, 16> {
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return withFifth(nibbles(a + 6, b + 6), a + 2, b + 2); }
};
struct Q5_1 : Legacy<24, true, 0> {
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return withFifth(nibbles(a + 8, b + 8), a + 4, b + 4); }
};
struct Q8_0 : Legacy<34, false, 128> {
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return _mm512_xor_si512(join256(a + 2, b + 2), _mm512_set1_epi8(char(0x80))); }
};

/// The values of a table that nibbles index, plus `offset`.
inline __m512i lookUp(const int8_t (&table)[16], int offset, __m512i indices) {
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_add_epi8(load128(table), _mm_set1_epi8(char(offset)))), indices);
}

struct IQ4_NL : Legacy<18, false, 128> {
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return lookUp(quant::NonlinearValues, offset, nibbles(a + 2, b + 2)); }
};

struct MXFP4 : Legacy<17, false, 12> {
  static void loadScales(const uint8_t* first, ptrdiff_t second, __mmask8 blocks, Group& group) {
    const __m256i index = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(17));
    const __m256i zero = _mm256_setzero_si256();
    const __m256i a = _mm256_mmask_i32gather_epi32(zero, blocks, index, first, 1);
    const __m256i b = _mm256_mmask_i32gather_epi32(zero, blocks, index, first + second, 1);
    const __m512i e = _mm512_and_si512(_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1), _mm512_set1_epi32(255));
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __mmask16 subnormal = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    group.scale = _mm512_castsi512_ps(_mm512_mask_sllv_epi32(normal, subnormal, _mm512_set1_epi32(0x00200000), e));
  }
  static __m512i codes(const uint8_t* a, const uint8_t* b) { return lookUp(quant::DoubledE2M1, offset, nibbles(a + 1, b + 1)); }
};

/// Blocks of 64 values with four scales are pairs of blocks of 32 whose halves have their own.
struct NVFP4 : Plain {
  static constexpr int offset = 12;
  static constexpr bool hasHalves = true;
  static constexpr size_t groupBytes = 4 * 36;

  /// quant::halvedUE4M3 of the lowest byte of every lane.
  static __m512 scales(__m512i lanes) {
    const __m512i x = _mm512_and_si512(lanes, _mm512_set1_epi32(255)), seven = _mm512_and_si512(x, _mm512_set1_epi32(0x7f));
    const __m512 normal = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(seven, 20), _mm512_set1_epi32(119 << 23)));
    const __m512 subnormal = _mm512_mul_ps(_mm512_cvtepi32_ps(seven), _mm512_set1_ps(0x1p-10f));
    const __m512 value = _mm512_mask_mov_ps(normal, _mm512_cmplt_epi32_mask(seven, _mm512_set1_epi32(8)), subnormal);
    return _mm512_maskz_mov_ps(_mm512_cmpneq_epi32_mask(x, _mm512_set1_epi32(0x7f)), value);
  }
  static __m512i codes(const uint8_t* a, const uint8_t* b) {
    const __m512i both = _mm512_castsi256_si512(_mm256_inserti128_si256(_mm256_castsi128_si256(load128(a)), load128(b), 1));
    const __m512i twice = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), both);
    const __m512i shifted = _mm512_srlv_epi64(twice, _mm512_setr_epi64(0, 4, 0, 4, 0, 4, 0, 4));
    return lookUp(quant::DoubledE2M1, offset, _mm512_and_si512(shifted, _mm512_set1_epi8(15)));
  }
};
template <> inline void loadBlocks<NVFP4>(const uint8_t* a, ptrdiff_t second, unsigned count, Group& group) {
  const __m256i index = _mm256_setr_epi32(0, 2, 36, 38, 72, 74, 108, 110), zero = _mm256_setzero_si256();
  const __mmask8 present = __mmask8((1u << count) - 1);
  const __m256i first = _mm256_mmask_i32gather_epi32(zero, present, index, a, 1), other = _mm256_mmask_i32gather_epi32(zero, present, index, a + second, 1);
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(first), other, 1);
  group.scale = NVFP4::scales(both);
  group.second = NVFP4::scales(_mm512_srli_epi32(both, 8));
  for (unsigned b = 0; b < count; ++b) {
    const uint8_t* at = a + 36 * (b / 2) + 4 + 16 * (b % 2);
    group.code[b] = NVFP4::codes(at, at + second);
  }
}

struct Packed {
  uint64_t scales, mins;
};

/// The eight 6-bit scales and minimums of a Q4_K or Q5_K block, a byte each.
inline Packed unpackScales(const uint8_t* at) {
  const uint32_t x = loadU32(at), y = loadU32(at + 4), z = loadU32(at + 8);
  const uint32_t highScales = (z & 0x0f0f0f0f) | (x >> 6 & 0x03030303) << 4;
  const uint32_t highMins = (z >> 4 & 0x0f0f0f0f) | (y >> 6 & 0x03030303) << 4;
  return {(x & 0x3f3f3f3f) | uint64_t(highScales) << 32, (y & 0x3f3f3f3f) | uint64_t(highMins) << 32};
}

struct SuperBlock : Plain {
  static constexpr int offset = 0;
  static constexpr bool hasMin = true;

  static void loadScales(const uint8_t* a, const uint8_t* b, Group& group) {
    const Packed first = unpackScales(a + 4), second = unpackScales(b + 4);
    const __m128i halves = _mm_insert_epi32(_mm_cvtsi32_si128(int(loadU32(a))), int(loadU32(b)), 1);
    const __m512 d = _mm512_castps128_ps512(_mm_cvtph_ps(halves)); // d, dmin of the first row, then of the second
    const __m512 scale = _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2), d);
    const __m512 min = _mm512_permutexvar_ps(_mm512_setr_epi32(1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3), d);
    const __m512i scales = _mm512_cvtepu8_epi32(_mm_set_epi64x(int64_t(second.scales), int64_t(first.scales)));
    const __m512i mins = _mm512_cvtepu8_epi32(_mm_set_epi64x(int64_t(second.mins), int64_t(first.mins)));
    group.scale = _mm512_mul_ps(scale, _mm512_cvtepi32_ps(scales));
    group.min = _mm512_mul_ps(min, _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_setzero_si512(), mins)));
  }
};

struct Q4_K : SuperBlock {
  static constexpr size_t groupBytes = 144;
};
template <> inline void loadBlocks<Q4_K>(const uint8_t* a, ptrdiff_t second, unsigned, Group& group) {
  SuperBlock::loadScales(a, a + second, group);
  const __m512i low = _mm512_set1_epi8(15);
  const uint8_t* at = a + 16;
  for (int s = 0; s < 8; s += 2, at += 32) {
    const __m512i both = join256(at, at + second);
    group.code[s] = _mm512_and_si512(both, low);
    group.code[s + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
  }
}

/// low | (high & mask)
inline __m512i orMasked(__m512i low, __m512i high, __m512i mask) { return _mm512_ternarylogic_epi32(low, high, mask, 0xf8); }

struct Q5_K : SuperBlock {
  static constexpr size_t groupBytes = 176;
};
template <> inline void loadBlocks<Q5_K>(const uint8_t* a, ptrdiff_t second, unsigned, Group& group) {
  SuperBlock::loadScales(a, a + second, group);
  const __m512i low = _mm512_set1_epi8(15), bit = _mm512_set1_epi8(16);
  const __m512i fifth = join256(a + 16, a + second + 16);
  const __m512i shifted[8] = {
      _mm512_slli_epi16(fifth, 4), _mm512_slli_epi16(fifth, 3), _mm512_slli_epi16(fifth, 2), _mm512_slli_epi16(fifth, 1),
      fifth, _mm512_srli_epi16(fifth, 1), _mm512_srli_epi16(fifth, 2), _mm512_srli_epi16(fifth, 3),
  };
  const uint8_t* at = a + 48;
  for (int s = 0; s < 8; s += 2, at += 32) {
    const __m512i both = join256(at, at + second);
    group.code[s] = orMasked(_mm512_and_si512(both, low), shifted[s], bit);
    group.code[s + 1] = orMasked(_mm512_and_si512(_mm512_srli_epi16(both, 4), low), shifted[s + 1], bit);
  }
}

struct IQ4_XS : Plain {
  static constexpr int offset = 128;
  static constexpr size_t groupBytes = 136;

  /// The scales of one row's blocks.
  static __m256 scales(const uint8_t* at) {
    uint16_t d, high;
    std::memcpy(&d, at, 2);
    std::memcpy(&high, at + 2, 2);
    const __m256i lows = _mm256_srlv_epi32(_mm256_set1_epi32(int(loadU32(at + 4))), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i highs = _mm256_srlv_epi32(_mm256_set1_epi32(high), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i both = _mm256_or_si256(_mm256_and_si256(lows, _mm256_set1_epi32(15)), _mm256_slli_epi32(_mm256_and_si256(highs, _mm256_set1_epi32(3)), 4));
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_set1_epi16(short(d))), _mm256_cvtepi32_ps(_mm256_sub_epi32(both, _mm256_set1_epi32(32))));
  }
};
template <> inline void loadBlocks<IQ4_XS>(const uint8_t* a, ptrdiff_t second, unsigned, Group& group) {
  group.scale = _mm512_insertf32x8(_mm512_castps256_ps512(IQ4_XS::scales(a)), IQ4_XS::scales(a + second), 1);
  const uint8_t* at = a + 8;
  for (int s = 0; s < 8; ++s, at += 16) group.code[s] = lookUp(quant::NonlinearValues, IQ4_XS::offset, nibbles(at, at + second));
}

/// Sixteen factors of each row's half blocks, in order.
inline void setFactors(__m128i first, __m128i second, Group& group) {
  group.factors16 = _mm512_cvtepi8_epi16(_mm256_inserti128_si256(_mm256_castsi128_si256(first), second, 1));
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
  const __m128i p = _mm_shuffle_epi8(first, order), q = _mm_shuffle_epi8(second, order);
  group.factors[0] = _mm512_cvtepi8_epi32(_mm_unpacklo_epi64(p, q));
  group.factors[1] = _mm512_cvtepi8_epi32(_mm_unpackhi_epi64(p, q));
}

/// The halves at two addresses, eight times each.
inline __m512 twoHalves(const uint8_t* a, const uint8_t* b) {
  uint16_t d, e;
  std::memcpy(&d, a, 2);
  std::memcpy(&e, b, 2);
  const __m256 lower = _mm256_cvtph_ps(_mm_set1_epi16(short(d))), upper = _mm256_cvtph_ps(_mm_set1_epi16(short(e)));
  return _mm512_insertf32x8(_mm512_castps256_ps512(lower), upper, 1);
}

struct Q2_K : Plain {
  static constexpr int offset = 0;
  static constexpr bool hasMin = true, hasFactors = true, hasMinFactors = true;
  static constexpr size_t groupBytes = 84;
};
template <> inline void loadBlocks<Q2_K>(const uint8_t* a, ptrdiff_t second, unsigned, Group& group) {
  const __m512i low = _mm512_set1_epi8(3);
  for (int half = 0; half < 2; ++half) {
    const __m512i four = join256(a + 16 + 32 * half, a + second + 16 + 32 * half);
    __m512i* code = group.code + 4 * half;
    code[0] = _mm512_and_si512(four, low);
    code[1] = _mm512_and_si512(_mm512_srli_epi16(four, 2), low);
    code[2] = _mm512_and_si512(_mm512_srli_epi16(four, 4), low);
    code[3] = _mm512_and_si512(_mm512_srli_epi16(four, 6), low);
  }
  const __m128i first = load128(a), other = load128(a + second), nibble = _mm_set1_epi8(15);
  setFactors(_mm_and_si128(first, nibble), _mm_and_si128(other, nibble), group);
  const __m256i mins = _mm256_and_si256(_mm256_srli_epi16(_mm256_inserti128_si256(_mm256_castsi128_si256(first), other, 1), 4), _mm256_set1_epi8(15));
  group.minFactors16 = _mm512_cvtepi8_epi16(mins);
  group.scale = twoHalves(a + 80, a + second + 80);
  group.min = _mm512_sub_ps(_mm512_setzero_ps(), twoHalves(a + 82, a + second + 82));
}

struct Q3_K : Plain {
  static constexpr int offset = 4;
  static constexpr bool hasFactors = true;
  static constexpr size_t groupBytes = 110;

  /// The factors of one row's half blocks.
  static __m128i factors(const uint8_t* at) {
    uint64_t low;
    std::memcpy(&low, at, 8);
    const __m128i lows = _mm_and_si128(_mm_set_epi64x(int64_t(low >> 4), int64_t(low)), _mm_set1_epi8(15));
    const __m128i highs = _mm_and_si128(_mm_srlv_epi32(_mm_set1_epi32(int(loadU32(at + 8))), _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    return _mm_sub_epi8(_mm_or_si128(lows, _mm_slli_epi16(highs, 4)), _mm_set1_epi8(32));
  }
};
template <> inline void loadBlocks<Q3_K>(const uint8_t* a, ptrdiff_t second, unsigned, Group& group) {
  const __m512i low = _mm512_set1_epi8(3), third = _mm512_set1_epi8(4), high = join256(a, a + second);
  const __m512i shifted[8] = {
      _mm512_slli_epi16(high, 2), _mm512_slli_epi16(high, 1), high, _mm512_srli_epi16(high, 1),
      _mm512_srli_epi16(high, 2), _mm512_srli_epi16(high, 3), _mm512_srli_epi16(high, 4), _mm512_srli_epi16(high, 5),
  };
  for (int half = 0; half < 2; ++half) {
    const __m512i four = join256(a + 32 + 32 * half, a + second + 32 + 32 * half);
    const __m512i* bits = shifted + 4 * half;
    __m512i* code = group.code + 4 * half;
    code[0] = orMasked(_mm512_and_si512(four, low), bits[0], third);
    code[1] = orMasked(_mm512_and_si512(_mm512_srli_epi16(four, 2), low), bits[1], third);
    code[2] = orMasked(_mm512_and_si512(_mm512_srli_epi16(four, 4), low), bits[2], third);
    code[3] = orMasked(_mm512_and_si512(_mm512_srli_epi16(four, 6), low), bits[3], third);
  }
  setFactors(Q3_K::factors(a + 96), Q3_K::factors(a + second + 96), group);
  group.scale = twoHalves(a + 108, a + second + 108);
}

struct Q6_K : Plain {
  static constexpr int offset = 32;
  static constexpr bool hasFactors = true;
  static constexpr size_t groupBytes = 210;
};
template <> inline void loadBlocks<Q6_K>(const uint8_t* a, ptrdiff_t second, unsigned, Group& group) {
  const __m512i low = _mm512_set1_epi8(15), top = _mm512_set1_epi8(0x30);
  for (int half = 0; half < 2; ++half) {
    const uint8_t* at = a + 64 * half;
    const __m512i x = join256(at, at + second), y = join256(at + 32, at + second + 32);
    const __m512i high = join256(a + 128 + 32 * half, a + second + 128 + 32 * half);
    __m512i* code = group.code + 4 * half;
    code[0] = orMasked(_mm512_and_si512(x, low), _mm512_slli_epi16(high, 4), top);
    code[1] = orMasked(_mm512_and_si512(y, low), _mm512_slli_epi16(high, 2), top);
    code[2] = orMasked(_mm512_and_si512(_mm512_srli_epi16(x, 4), low), high, top);
    code[3] = orMasked(_mm512_and_si512(_mm512_srli_epi16(y, 4), low), _mm512_srli_epi16(high, 2), top);
  }
  setFactors(load128(a + 192), load128(a + second + 192), group);
  group.scale = twoHalves(a + 208, a + second + 208);
}

} // namespace
} // namespace mashbox::cpu::avx512
