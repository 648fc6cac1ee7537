#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Helpers of the AVX2 tier; only its own files include this.
namespace mashbox::cpu::avx2 {
namespace {

inline uint32_t loadU32(const void* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline __m256i load256(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
inline __m128i load128(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
inline __m256i join128(__m128i low, __m128i high) { return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1); }

/// Eight lanes as tiers.hpp orders them.
inline float sumLanes(__m256 x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/// Sixteen lanes as tiers.hpp orders them.
inline float sumLanes(__m256 low, __m256 high) { return sumLanes(_mm256_add_ps(low, high)); }

/// Sixteen lanes, four a register, in the same order.
inline double sumLanes(const __m256d x[4]) {
  const __m256d s = _mm256_add_pd(_mm256_add_pd(x[0], x[2]), _mm256_add_pd(x[1], x[3]));
  const __m128d t = _mm_add_pd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1));
  return _mm_cvtsd_f64(_mm_add_sd(t, _mm_unpackhi_pd(t, t)));
}

/// e^x to about one unit in the last place (the polynomial is Cephes' expf).
inline __m256 exp(__m256 x) {
  // The second operand survives when one is NaN.
  x = _mm256_max_ps(_mm256_set1_ps(-104), _mm256_min_ps(_mm256_set1_ps(89), x));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), _mm256_add_ps(r, _mm256_set1_ps(1)));
  // 2^n in two factors, since n reaches beyond the exponents of both ends.
  const __m256i exponent = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(exponent, 1), bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), bias), 23);
  return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

/// Eight rows of eight 32-bit words, row after row, to eight words of eight rows.
inline void transpose8x8(const void* rows, __m256i column[8]) {
  const auto* in = static_cast<const __m128i*>(rows);
  for (int h = 0; h < 2; ++h) {
    __m256i a[4];
    for (int i = 0; i < 4; ++i) a[i] = join128(in[2 * i + h], in[2 * (i + 4) + h]);
    const __m256i p = _mm256_unpacklo_epi32(a[0], a[1]), q = _mm256_unpackhi_epi32(a[0], a[1]);
    const __m256i s = _mm256_unpacklo_epi32(a[2], a[3]), t = _mm256_unpackhi_epi32(a[2], a[3]);
    column[4 * h] = _mm256_unpacklo_epi64(p, s);
    column[4 * h + 1] = _mm256_unpackhi_epi64(p, s);
    column[4 * h + 2] = _mm256_unpacklo_epi64(q, t);
    column[4 * h + 3] = _mm256_unpackhi_epi64(q, t);
  }
}

/// Adds up fours of 8-bit products in 32-bit lanes. Unsigned codes below 128 only, or the 16-bit pairs would saturate.
inline __m256i dotUnsigned(__m256i codes, __m256i q) { return _mm256_madd_epi16(_mm256_maddubs_epi16(codes, q), _mm256_set1_epi16(1)); }
/// The same for signed codes.
inline __m256i dotSigned(__m256i codes, __m256i q) { return dotUnsigned(_mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes)); }

} // namespace
} // namespace mashbox::cpu::avx2
