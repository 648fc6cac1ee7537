#if defined(__x86_64__)
#include "cpu/backend_attention_tile.hpp"
#include "cpu/simd_avx2.hpp"

namespace mashbox::cpu {
namespace {

struct Avx2 {
  using V = __m256;
  static constexpr size_t Width = 8, MaxQueries = 2;
  static V zero() { return _mm256_setzero_ps(); }
  static V set(float x) { return _mm256_set1_ps(x); }
  static V load(const float* at) { return _mm256_loadu_ps(at); }
  static V load(const uint16_t* at) { return _mm256_cvtph_ps(avx2::load128(at)); }
  static void store(float* at, V x) { _mm256_storeu_ps(at, x); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }
  static V exp(V x) { return avx2::exp(x); }
  static float sum(V x) { return avx2::sumLanes(x); }
  static float largest(V x) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
};

} // namespace

const AttentionKernels avx2AttentionF16 = attention::kernelsOf<Avx2, uint16_t>;
const AttentionKernels avx2AttentionF32 = attention::kernelsOf<Avx2, float>;

} // namespace mashbox::cpu
#endif
