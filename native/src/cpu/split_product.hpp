#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>
#include <cstdint>

namespace mashbox::cpu {

/// Products of float32 matrices on tiles of bfloat16. A factor x is taken as h + l, where h is x rounded to bfloat16 and l the rest rounded
/// likewise: within 2^-17 of x. An element of C = A · B adds up, for one run of 32 k after the other, h_a·l_b, h_a·h_b and l_a·h_b, each
/// of them as TDPBF16PS does: the even k of the run one after the other from 0, the odd k likewise, their sum, and that to what was there,
/// with denormals as zeros. So an element depends on its row of A and its column of B alone, whatever stands beside it.
///
/// A split matrix is a run of tiles, each a plane of h and one of l: 16 rows × 32 k of A, or 16 columns × 32 k of B with the pairs of k
/// next to each other. What is missing to whole tiles is zero.
struct SplitKernels {
  /// `rows` × `inner` floats of A, inner % 16 == 0, to splitSize(rows, inner) values that begin with a cache line.
  void (*splitRows)(const float* a, size_t stride, size_t rows, size_t inner, uint16_t* tiles);
  /// `inner` × `columns` floats of B, row k times factors[k] unless null, columns % 16 == 0, to splitSize(columns, inner) values that begin with a cache line.
  void (*splitColumns)(const float* b, size_t stride, const float* factors, size_t inner, size_t columns, uint16_t* tiles);
  /// C = A · B, or C + A · B if `add`, of split matrices. Rows of C are written by sixteens, so there must be so many.
  void (*multiply)(const uint16_t* a, const uint16_t* b, size_t rows, size_t inner, size_t columns, float* c, size_t stride, bool add);
};

namespace split {

inline constexpr size_t Lines = 16;             ///< rows of A or columns of B in a tile
inline constexpr size_t Inner = 32;             ///< k of a tile
inline constexpr size_t Plane = Lines * Inner;  ///< values

} // namespace split

/// Values of a split matrix with so many rows (of A) or columns (of B).
constexpr size_t splitSize(size_t lines, size_t inner) {
  return (lines + split::Lines - 1) / split::Lines * ((inner + split::Inner - 1) / split::Inner) * 2 * split::Plane;
}

/// Null where the tier multiplies in float32.
const SplitKernels* splitKernels(Isa isa);

/// The same arithmetic, bit for bit, on any machine.
extern const SplitKernels modelSplit;
#if defined(__x86_64__)
extern const SplitKernels amxSplit;
#endif

} // namespace mashbox::cpu
