#include "base/float16.hpp"
#include "cpu/backend_attention_tile.hpp"
#include "cpu/tiers.hpp"

#include <cmath>

namespace mashbox::cpu {
namespace {

struct Scalar {
  using V = float;
  static constexpr size_t Width = 1, MaxQueries = 1;
  static V zero() { return 0; }
  static V set(float x) { return x; }
  static V load(const float* at) { return *at; }
  static V load(const uint16_t* at) { return halfToFloat(*at); }
  static void store(float* at, V x) { *at = x; }
  static V fma(V a, V b, V c) { return a * b + c; }
  static V mul(V a, V b) { return a * b; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V max(V a, V b) { return a > b ? a : b; }
  static V exp(V x) { return std::exp(x); }
  static float sum(V x) { return x; }
  static float largest(V x) { return x; }
};

} // namespace

const AttentionKernels scalarAttentionF16 = attention::kernelsOf<Scalar, uint16_t>;
const AttentionKernels scalarAttentionF32 = attention::kernelsOf<Scalar, float>;

const AttentionKernels& attentionKernels(Isa isa, bool half) {
  switch (kernels(isa).isa) {
#if defined(__x86_64__)
  case Isa::Avx512: return half ? avx512AttentionF16 : avx512AttentionF32;
  case Isa::Avx2: return half ? avx2AttentionF16 : avx2AttentionF32;
#endif
  default: return half ? scalarAttentionF16 : scalarAttentionF32;
  }
}

} // namespace mashbox::cpu
