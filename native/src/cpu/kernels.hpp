#pragma once

#include "base/result.hpp"
#include "quant/format.hpp"

#include <cstddef>
#include <cstdint>

namespace mashbox::cpu {

/// Instruction tiers, lowest first. `Avx2` means AVX2+FMA+F16C, `Avx512` means F+BW+DQ+VL+VNNI besides those.
enum class Isa { Scalar, Avx2, Avx512 };

const char* isaName(Isa isa); ///< "scalar", "avx2", "avx512"
/// The best tier of this CPU (cpuid and xgetbv).
Isa detectIsa();
/// `detectIsa()`, lowered (never raised) by MASHBOX_ISA=scalar|avx2|avx512; null and "" mean no override, an unknown name is
/// an error that lists the tiers.
Result<Isa> chooseIsa(const char* override);

/// Activation rows in both forms that the dot kernels read. The 8-bit form has one scale per 32 values:
/// scale = amax/127, q = round(x/scale), sum16 = sums of 16 consecutive q (two per block), which carry minimum and offset terms.
struct Activations {
  size_t rows = 0, length = 0; ///< length is the row's K; the 8-bit form needs length % 32 == 0
  const float* f32 = nullptr;  ///< rows × length
  const int8_t* q = nullptr;   ///< rows × length, each within [-127, 127]
  const float* scale = nullptr;   ///< rows × length/32
  const int16_t* sum16 = nullptr; ///< rows × length/16
};

/// One tier's kernels. All of them accumulate every output element in one fixed order of k, so a row's result does not depend
/// on how many rows run beside it, on the thread count, or on how the weight rows are divided. The 8-bit products, `quantizeRow`,
/// `rmsNorm` and the half conversions agree bit for bit between tiers; the float products, `siluMul`, `geluMul`, `softcap` and `softmax` to rounding.
/// Pointers need the alignment of their element type only.
struct Kernels {
  Isa isa;
  /// Quantizes one row of activations to 8 bits; length % 32 == 0.
  void (*quantizeRow)(const float* x, size_t length, int8_t* q, float* scale, int16_t* sum16);
  /// out[m * outStride + r] = Σ_k W[r][k] · x[m][k] for weight rows r in [0, rowCount), which start at `weights`.
  /// Reads the 8-bit form where `usesInt8(type)`, else the float form. Every decodable type works in every tier: one without a vector
  /// kernel is dequantized per row and multiplied in float by the scalar tier's.
  void (*matmulRows)(quant::Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride);
  float (*dotF32)(const float* a, const float* b, size_t n);
  float (*dotF16)(const float* a, const uint16_t* b, size_t n);
  /// y[i] += a · x[i]
  void (*axpyF32)(float a, const float* x, float* y, size_t n);
  void (*axpyF16)(float a, const uint16_t* x, float* y, size_t n);
  /// out[i] = x[i] · weight[i] / sqrt(mean(x²) + epsilon); `out` may be `x`.
  void (*rmsNorm)(const float* x, const float* weight, float epsilon, float* out, size_t n);
  /// out[i] = silu(gate[i]) · up[i]; `out` may be either input.
  void (*siluMul)(const float* gate, const float* up, float* out, size_t n);
  /// out[i] = gelu(gate[i]) · up[i] in the tanh form; `out` may be either input.
  void (*geluMul)(const float* gate, const float* up, float* out, size_t n);
  /// x[i] = cap · tanh(x[i] / cap)
  void (*softcap)(float* x, float cap, size_t n);
  /// x[i] = exp(x[i]) / Σ exp(x), in place; -infinity becomes 0, and so does everything when all of them are -infinity.
  void (*softmax)(float* x, size_t n);
  void (*halfToFloat)(const uint16_t* in, float* out, size_t n);
  /// Rounds to nearest even; values beyond 65504 become infinities, NaN stays a quiet NaN.
  void (*floatToHalf)(const float* in, uint16_t* out, size_t n);
};

/// The kernels of a tier; the next lower one where this build lacks it.
const Kernels& kernels(Isa isa);
/// True for the quantized formats with integer dot kernels (Q4_0 … Q8_0, Q2_K … Q6_K, IQ4_NL, IQ4_XS, MXFP4, NVFP4); F32, F16 and BF16 multiply in float.
bool usesInt8(quant::Type type);
/// True where the vector tiers have kernels for the format: those of `usesInt8`, F32, F16 and BF16. Others run the scalar tier's.
bool hasKernel(quant::Type type);

} // namespace mashbox::cpu
