#include "cpu/backend_delta_net_tile.hpp"

#include <cmath>

namespace mashbox::cpu {
namespace {

struct Scalar {
  using V = float;
  static constexpr size_t Width = 1, Parts = 16, Rows = 1, TallRows = 1, FewParts = 16, FewRows = 1;
  static V zero() { return 0; }
  static V set(float x) { return x; }
  static V load(const float* at) { return *at; }
  static void store(float* at, V x) { *at = x; }
  static V fma(V a, V b, V c) { return a * b + c; }
  static V mul(V a, V b) { return a * b; }
  static float sum(V x) { return x; }
  static float root(float x) { return std::sqrt(x); }
  static void transposeUnit(const float* rows, size_t rowStride, float* columns, size_t columnStride) { deltanet::transposeUnitPlainly<Scalar>(rows, rowStride, columns, columnStride); }
  static V decayed(const double* sums, double now) {
    const auto exponent = static_cast<float>(now - *sums);
    return exponent < LeastExponent ? 0 : std::exp(exponent);
  }
  static V silu(V x) { return x / (1 + std::exp(-x)); }
};

} // namespace

const DeltaNetKernels scalarDeltaNet = deltanet::kernelsOf<Scalar>;

const DeltaNetKernels& deltaNetKernels(Isa isa) {
  switch (kernels(isa).isa) {
#if defined(__x86_64__)
  case Isa::Avx512: return avx512DeltaNet;
  case Isa::Avx2: return avx2DeltaNet;
#endif
  default: return scalarDeltaNet;
  }
}

} // namespace mashbox::cpu
