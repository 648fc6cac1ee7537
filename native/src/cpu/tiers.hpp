#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>
#include <cstdint>

/// What the instruction tiers share. Files of a tier are compiled with that tier's flags, so they keep every function of theirs
/// in an unnamed namespace and call nothing inline from here or from the standard library: the linker keeps one copy of an
/// inline function for the whole program, and that copy must run everywhere.
///
/// The order of every 8-bit dot product, the same in all tiers (so they agree bit for bit; no fused multiply-add). A row is a run of
/// 32-value blocks b with a weight scale w_b, perhaps a minimum m_b, and exact integer sums: I_b of the products with the codes (times
/// factors of half blocks, where the format has them), M_b of the activation (times factors too). The activation has a scale a_b:
///   lane l ∈ [0, 8) adds up its blocks b = 8g + l in rising g:  acc_l += (w_b · a_b) · I_b,  then  acc_l += m_b · (a_b · M_b)
///   where the halves of a block have scales w_b and w'_b:       acc_l += (w_b · a_b) · I_b,  then  acc_l += (w'_b · a_b) · I'_b
///   result = ((acc0 + acc4) + (acc2 + acc6)) + ((acc1 + acc5) + (acc3 + acc7))
/// Float dot products have 16 lanes (k mod 16); lane l first adds lane l + 8, then the tree above.
namespace mashbox::cpu {

extern const Kernels scalarKernels;
#if defined(__x86_64__)
extern const Kernels avx2Kernels;
extern const Kernels avx512Kernels;
#endif

using MatmulRows = decltype(Kernels::matmulRows);
using Type = quant::Type;

/// A 64-byte aligned buffer of the calling thread, at least `bytes` long and valid until the next call.
std::byte* threadScratch(size_t bytes);
/// `quant::dequantize` without a span.
void dequantizeRow(Type type, const std::byte* row, float* out, size_t length);

} // namespace mashbox::cpu
