#if defined(__x86_64__)
#include "cpu/backend_delta_net_tile.hpp"
#include "cpu/simd_avx512.hpp"

namespace mashbox::cpu {
namespace {

struct Avx512 {
  using V = __m512;
  static constexpr size_t Width = 16, Parts = 4, Rows = 6, TallRows = 12, FewParts = 8, FewRows = 2;
  static V zero() { return _mm512_setzero_ps(); }
  static V set(float x) { return _mm512_set1_ps(x); }
  static V load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* at, V x) { _mm512_storeu_ps(at, x); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static float sum(V x) { return avx512::sumLanes(x); }
  static float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
  static void transposeUnit(const float* rows, size_t rowStride, float* columns, size_t columnStride) {
    __m512 a[16], b[16];
    for (size_t i = 0; i < 16; ++i) a[i] = _mm512_loadu_ps(rows + i * rowStride);
    for (size_t i = 0; i < 16; i += 2) b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]), b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    // Four rows of column 4q + c within quarter q.
    for (size_t i = 0; i < 16; i += 4)
      for (size_t c = 0; c < 2; ++c) {
        a[i + 2 * c] = _mm512_shuffle_ps(b[i + c], b[i + 2 + c], 0b01000100);
        a[i + 2 * c + 1] = _mm512_shuffle_ps(b[i + c], b[i + 2 + c], 0b11101110);
      }
    for (size_t c = 0; c < 4; ++c) {
      const __m512 first = _mm512_shuffle_f32x4(a[c], a[c + 4], 0b10001000), second = _mm512_shuffle_f32x4(a[c + 8], a[c + 12], 0b10001000);
      const __m512 third = _mm512_shuffle_f32x4(a[c], a[c + 4], 0b11011101), fourth = _mm512_shuffle_f32x4(a[c + 8], a[c + 12], 0b11011101);
      _mm512_storeu_ps(columns + c * columnStride, _mm512_shuffle_f32x4(first, second, 0b10001000));
      _mm512_storeu_ps(columns + (c + 8) * columnStride, _mm512_shuffle_f32x4(first, second, 0b11011101));
      _mm512_storeu_ps(columns + (c + 4) * columnStride, _mm512_shuffle_f32x4(third, fourth, 0b10001000));
      _mm512_storeu_ps(columns + (c + 12) * columnStride, _mm512_shuffle_f32x4(third, fourth, 0b11011101));
    }
  }
  /// 2^t by a polynomial for the fraction of t (of least error on [0, 1], 6e-9 of the value), scaled by the floor of t.
  static V power2(V t) {
    const V fraction = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    V power = _mm512_set1_ps(2.18657849e-4f);
    power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(1.23913318e-3f));
    power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(9.68418643e-3f));
    power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(5.54806292e-2f));
    power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(2.40230456e-1f));
    power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(6.93146944e-1f));
    power = _mm512_fmadd_ps(power, fraction, _mm512_set1_ps(1));
    return _mm512_scalef_ps(power, t);
  }
  static V decayed(const double* sums, double now) {
    constexpr double ToBinary = 1.4426950408889634;
    const auto exponents = [&](size_t at) { return _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_set1_pd(ToBinary), _mm512_sub_pd(_mm512_set1_pd(now), _mm512_loadu_pd(sums + at)))); };
    const V t = _mm512_insertf32x8(_mm512_castps256_ps512(exponents(0)), exponents(8), 1);
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(t, _mm512_set1_ps(static_cast<float>(LeastExponent * ToBinary)), _CMP_GE_OQ), power2(t));
  }
  /// x / (1 + e^-x), divided with a reciprocal of 14 bits and one Newton step, which is exact to about one unit in the last place.
  static V silu(V x) {
    const V t = _mm512_min_ps(_mm512_set1_ps(126), _mm512_mul_ps(x, _mm512_set1_ps(-1.44269504088896341f)));
    const V divisor = _mm512_add_ps(_mm512_set1_ps(1), power2(t));
    const V estimate = _mm512_rcp14_ps(divisor);
    return _mm512_mul_ps(x, _mm512_mul_ps(estimate, _mm512_fnmadd_ps(divisor, estimate, _mm512_set1_ps(2))));
  }
};

} // namespace

const DeltaNetKernels avx512DeltaNet = deltanet::kernelsOf<Avx512>;

} // namespace mashbox::cpu
#endif
