#if defined(__x86_64__)
#include "cpu/backend_delta_net_tile.hpp"
#include "cpu/simd_avx2.hpp"

namespace mashbox::cpu {
namespace {

struct Avx2 {
  using V = __m256;
  static constexpr size_t Width = 8, Parts = 2, Rows = 6, TallRows = 6, FewParts = 4, FewRows = 2;
  static V zero() { return _mm256_setzero_ps(); }
  static V set(float x) { return _mm256_set1_ps(x); }
  static V load(const float* at) { return _mm256_loadu_ps(at); }
  static void store(float* at, V x) { _mm256_storeu_ps(at, x); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static float sum(V x) { return avx2::sumLanes(x); }
  static float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
  static void transposeUnit(const float* rows, size_t rowStride, float* columns, size_t columnStride) { deltanet::transposeUnitPlainly<Avx2>(rows, rowStride, columns, columnStride); }
  static V decayed(const double* sums, double now) {
    const auto exponents = [&](size_t at) { return _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_set1_pd(now), _mm256_loadu_pd(sums + at))); };
    const V exponent = _mm256_set_m128(exponents(4), exponents(0));
    return _mm256_and_ps(avx2::exp(exponent), _mm256_cmp_ps(exponent, _mm256_set1_ps(LeastExponent), _CMP_GE_OQ));
  }
  static V silu(V x) { return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1), avx2::exp(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f))))); }
};

} // namespace

const DeltaNetKernels avx2DeltaNet = deltanet::kernelsOf<Avx2>;

} // namespace mashbox::cpu
#endif
