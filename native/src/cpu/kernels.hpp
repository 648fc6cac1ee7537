#pragma once

#include "base/result.hpp"
#include "quant/format.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mashbox::cpu {

/// Instruction tiers, lowest first. `Avx512` means F+BW+DQ+VL+VNNI.
enum class Isa { Scalar, Avx2, Avx512 };

const char* isaName(Isa isa); ///< "scalar", "avx2", "avx512"
/// The best tier of this CPU (cpuid and xgetbv).
Isa detectIsa();
/// `detectIsa()`, lowered (never raised) by MASHBOX_ISA=scalar|avx2|avx512; an unknown name is an error that lists the tiers.
Result<Isa> chooseIsa(const char* override);

/// Activation rows in both forms that the dot kernels read. The 8-bit form has one scale per 32 values:
/// scale = amax/127, q = round(x/scale), sum16 = sums of 16 consecutive q (two per block), which carry minimum and offset terms.
struct Activations {
  size_t rows = 0, length = 0; ///< length is the row's K; the 8-bit form needs length % 32 == 0
  const float* f32 = nullptr;  ///< rows × length
  const int8_t* q = nullptr;   ///< rows × length
  const float* scale = nullptr;   ///< rows × length/32
  const int16_t* sum16 = nullptr; ///< rows × length/16
};

/// One tier's kernels. All of them accumulate every output element in one fixed order of k, so a row's result does not depend
/// on how many rows run beside it, on the thread count, or on how the weight rows are divided.
struct Kernels {
  Isa isa;
  /// Quantizes one row of activations to 8 bits.
  void (*quantizeRow)(const float* x, size_t length, int8_t* q, float* scale, int16_t* sum16);
  /// out[m * outStride + r] = Σ_k W[r][k] · x[m][k] for weight rows r in [0, rowCount), which start at `weights`.
  /// Reads the 8-bit form where `usesInt8(type)`, else the float form. Every decodable type works in every tier: a type without
  /// its own vector kernel is dequantized per row and multiplied in float.
  void (*matmulRows)(quant::Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride);
  float (*dotF32)(const float* a, const float* b, size_t n);
  void (*rmsNorm)(const float* x, const float* weight, float epsilon, float* out, size_t n);
  /// out[i] = silu(gate[i]) · up[i]
  void (*siluMul)(const float* gate, const float* up, float* out, size_t n);
  void (*halfToFloat)(const uint16_t* in, float* out, size_t n);
  void (*floatToHalf)(const float* in, uint16_t* out, size_t n);
};

const Kernels& kernels(Isa isa);
/// True for the quantized formats with integer dot kernels (Q4_0 … Q8_0, Q4_K, Q5_K, Q6_K); F32, F16, BF16 and the rest multiply in float.
bool usesInt8(quant::Type type);

} // namespace mashbox::cpu
