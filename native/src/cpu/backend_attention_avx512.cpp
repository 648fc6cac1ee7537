#if defined(__x86_64__)
#include "cpu/backend_attention_tile.hpp"
#include "cpu/simd_avx512.hpp"

namespace mashbox::cpu {
namespace {

struct Avx512 {
  using V = __m512;
  static constexpr size_t Width = 16, MaxQueries = 4;
  static V zero() { return _mm512_setzero_ps(); }
  static V set(float x) { return _mm512_set1_ps(x); }
  static V load(const float* at) { return _mm512_loadu_ps(at); }
  static V load(const uint16_t* at) { return _mm512_cvtph_ps(avx512::load256(at)); }
  static void store(float* at, V x) { _mm512_storeu_ps(at, x); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V sub(V a, V b) { return _mm512_sub_ps(a, b); }
  static V max(V a, V b) { return _mm512_max_ps(a, b); }
  static V exp(V x) { return avx512::exp(x); }
  static float sum(V x) { return avx512::sumLanes(x); }
  static float largest(V x) { return _mm512_reduce_max_ps(x); }
};

} // namespace

const AttentionKernels avx512AttentionF16 = attention::kernelsOf<Avx512, uint16_t>;
const AttentionKernels avx512AttentionF32 = attention::kernelsOf<Avx512, float>;

} // namespace mashbox::cpu
#endif
