#if defined(__x86_64__)
#include "cpu/backend_attention_tile.hpp"

#include <immintrin.h>

namespace mashbox::cpu {
namespace {

struct Avx2 {
  using V = __m256;
  static constexpr size_t Width = 8, MaxQueries = 2;
  static V zero() { return _mm256_setzero_ps(); }
  static V set(float x) { return _mm256_set1_ps(x); }
  static V load(const float* at) { return _mm256_loadu_ps(at); }
  static V load(const uint16_t* at) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))); }
  static void store(float* at, V x) { _mm256_storeu_ps(at, x); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static float sum(V x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float largest(V x) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  /// Cephes' expf; what is below e^-87 becomes e^-87.
  static V exp(V x) {
    x = _mm256_max_ps(_mm256_set1_ps(-87), _mm256_min_ps(_mm256_set1_ps(88), x));
    const V n = _mm256_round_ps(mul(x, set(1.44269504088896341f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    V r = _mm256_fnmadd_ps(n, set(0.693359375f), x);
    r = _mm256_fnmadd_ps(n, set(-2.12194440e-4f), r);
    V p = set(1.9875691500e-4f);
    for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) p = fma(p, r, set(c));
    p = fma(p, mul(r, r), add(r, set(1)));
    const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return mul(p, _mm256_castsi256_ps(power));
  }
};

} // namespace

const AttentionKernels avx2AttentionF16 = attention::kernelsOf<Avx2, uint16_t>;
const AttentionKernels avx2AttentionF32 = attention::kernelsOf<Avx2, float>;

} // namespace mashbox::cpu
#endif
