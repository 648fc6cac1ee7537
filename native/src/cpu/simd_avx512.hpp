#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Helpers of the AVX-512 tier; only its own files include this.
namespace mashbox::cpu::avx512 {
namespace {

inline __mmask16 firstLanes(size_t n) { return __mmask16((1u << n) - 1); } ///< n ≤ 16

inline uint32_t loadU32(const uint8_t* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline __m256i load256(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
inline __m128i load128(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }

/// [a | b]
inline __m512i join256(const void* a, const void* b) { return _mm512_inserti64x4(_mm512_castsi256_si512(load256(a)), load256(b), 1); }
/// [a a | b b]
inline __m512i join128Twice(const void* a, const void* b) {
  return _mm512_mask_broadcast_i64x2(_mm512_broadcast_i64x2(load128(a)), 0xf0, load128(b));
}
/// [x | x]
inline __m512i twice256(const void* x) { return _mm512_broadcast_i64x4(load256(x)); }

/// Adds up each half of eight lanes as tiers.hpp orders it.
inline __m512 sumHalves(__m512 x) {
  x = _mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0b10110001));
  x = _mm512_add_ps(x, _mm512_permute_ps(x, 0b01001110));
  return _mm512_add_ps(x, _mm512_permute_ps(x, 0b10110001));
}

inline float sumLanes(__m512 x) {
  x = sumHalves(_mm512_add_ps(x, _mm512_shuffle_f32x4(x, x, 0b01001110)));
  return _mm512_cvtss_f32(x);
}

inline double sumLanes(__m512d low, __m512d high) {
  __m512d x = _mm512_add_pd(low, high);
  x = _mm512_add_pd(x, _mm512_shuffle_f64x2(x, x, 0b01001110));
  x = _mm512_add_pd(x, _mm512_shuffle_f64x2(x, x, 0b10110001));
  x = _mm512_add_pd(x, _mm512_permute_pd(x, 0b01010101));
  return _mm512_cvtsd_f64(x);
}

/// e^x to about one unit in the last place (the polynomial is Cephes' expf).
inline __m512 exp(__m512 x) {
  // The second operand survives when one is NaN.
  x = _mm512_max_ps(_mm512_set1_ps(-104), _mm512_min_ps(_mm512_set1_ps(89), x));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_set1_ps(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, _mm512_set1_ps(1)));
  return _mm512_scalef_ps(p, n);
}

/// Sixteen rows of eight 32-bit words, row after row, to eight words of sixteen rows.
inline void transpose16x8(const void* rows, __m512i column[8]) {
  const auto* in = static_cast<const __m256i*>(rows);
  __m512i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    // Rows i, i+4, i+8, i+12 side by side, their low and high halves apart.
    const __m512i left = _mm512_inserti64x4(_mm512_castsi256_si512(in[i]), in[i + 8], 1);
    const __m512i right = _mm512_inserti64x4(_mm512_castsi256_si512(in[i + 4]), in[i + 12], 1);
    a[i] = _mm512_permutex2var_epi64(left, _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), right);
    a[i + 4] = _mm512_permutex2var_epi64(left, _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15), right);
  }
  for (int h = 0; h < 8; h += 4) {
    b[h] = _mm512_unpacklo_epi32(a[h], a[h + 1]);
    b[h + 1] = _mm512_unpackhi_epi32(a[h], a[h + 1]);
    b[h + 2] = _mm512_unpacklo_epi32(a[h + 2], a[h + 3]);
    b[h + 3] = _mm512_unpackhi_epi32(a[h + 2], a[h + 3]);
    column[h] = _mm512_unpacklo_epi64(b[h], b[h + 2]);
    column[h + 1] = _mm512_unpackhi_epi64(b[h], b[h + 2]);
    column[h + 2] = _mm512_unpacklo_epi64(b[h + 1], b[h + 3]);
    column[h + 3] = _mm512_unpackhi_epi64(b[h + 1], b[h + 3]);
  }
}

} // namespace
} // namespace mashbox::cpu::avx512
