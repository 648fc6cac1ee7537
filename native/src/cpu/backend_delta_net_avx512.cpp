#if defined(__x86_64__)
#include "cpu/backend_delta_net_tile.hpp"
#include "cpu/simd_avx512.hpp"

namespace mashbox::cpu {
namespace {

struct Avx512 {
  using V = __m512;
  static constexpr size_t Width = 16, Parts = 4, Rows = 6, FewParts = 8, FewRows = 2;
  static V zero() { return _mm512_setzero_ps(); }
  static V set(float x) { return _mm512_set1_ps(x); }
  static V load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* at, V x) { _mm512_storeu_ps(at, x); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V exp(V x) { return avx512::exp(x); }
  /// With a reciprocal of 14 bits and one Newton step, which is exact to about one unit in the last place.
  static V silu(V x) {
    const V divisor = _mm512_add_ps(_mm512_set1_ps(1), avx512::exp(_mm512_min_ps(_mm512_set1_ps(80), _mm512_sub_ps(_mm512_setzero_ps(), x))));
    const V estimate = _mm512_rcp14_ps(divisor);
    return _mm512_mul_ps(x, _mm512_mul_ps(estimate, _mm512_fnmadd_ps(divisor, estimate, _mm512_set1_ps(2))));
  }
};

} // namespace

const DeltaNetKernels avx512DeltaNet = deltanet::kernelsOf<Avx512>;

} // namespace mashbox::cpu
#endif
