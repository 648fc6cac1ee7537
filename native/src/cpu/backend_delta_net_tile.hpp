#pragma once

#include "cpu/backend_delta_net_kernels.hpp"

/// Gated delta net kernels over a tier's vectors `S`: Width, Parts (vectors across a tile), Rows (of a tile), TallRows (of one that is a
/// unit wide), FewParts and FewRows (of a tile for one or two rows, which streams `b`), V, zero, set, load, store, fma, mul, sum (of the
/// lanes), root (of a float), transposeUnit (of Unit × Unit floats), silu, decayed (e^(now - sums[i]), or 0 below `LeastExponent`). `S` lives in an unnamed namespace of the tier's file, and so does every instance of these templates.
namespace mashbox::cpu::deltanet {

/// Every length is a multiple of this.
inline constexpr size_t Unit = 16;

/// For tiers without a faster way.
template <class S> void transposeUnitPlainly(const float* rows, size_t rowStride, float* columns, size_t columnStride) {
  for (size_t d = 0; d < Unit; ++d)
    for (size_t i = 0; i < Unit; ++i) columns[d * columnStride + i] = rows[i * rowStride + d];
}

template <class S, size_t Rows, size_t Parts>
void multiplyTile(const float* a, size_t aStride, const float* b, size_t bStride, float* c, size_t cStride, size_t inner) {
  typename S::V sum[Rows][Parts];
  for (size_t r = 0; r < Rows; ++r)
    for (size_t p = 0; p < Parts; ++p) sum[r][p] = S::load(c + r * cStride + p * S::Width);
  for (size_t k = 0; k < inner; ++k) {
    typename S::V line[Parts];
    for (size_t p = 0; p < Parts; ++p) line[p] = S::load(b + k * bStride + p * S::Width);
    for (size_t r = 0; r < Rows; ++r) {
      const auto factor = S::set(a[r * aStride + k]);
      for (size_t p = 0; p < Parts; ++p) sum[r][p] = S::fma(factor, line[p], sum[r][p]);
    }
  }
  for (size_t r = 0; r < Rows; ++r)
    for (size_t p = 0; p < Parts; ++p) S::store(c + r * cStride + p * S::Width, sum[r][p]);
}

/// The last rows of a column of tiles, fewer than a whole tile.
template <class S, size_t Rows, size_t Parts>
void multiplyRest(const float* a, size_t aStride, const float* b, size_t bStride, float* c, size_t cStride, size_t rows, size_t inner) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return multiplyTile<S, Rows, Parts>(a, aStride, b, bStride, c, cStride, inner);
    multiplyRest<S, Rows - 1, Parts>(a, aStride, b, bStride, c, cStride, rows, inner);
  }
}

template <class S, size_t Rows, size_t Parts>
void multiplyColumns(const float* a, size_t aStride, const float* b, size_t bStride, float* c, size_t cStride, size_t rows, size_t inner) {
  size_t r = 0;
  for (; r + Rows <= rows; r += Rows) multiplyTile<S, Rows, Parts>(a + r * aStride, aStride, b, bStride, c + r * cStride, cStride, inner);
  multiplyRest<S, Rows - 1, Parts>(a + r * aStride, aStride, b, bStride, c + r * cStride, cStride, rows - r, inner);
}

template <class S> struct Tile {
  static void multiplyAdd(const float* a, size_t aStride, const float* b, size_t bStride, float* c, size_t cStride, size_t rows, size_t inner, size_t columns) {
    constexpr size_t Wide = S::Parts * S::Width, Widest = S::FewParts * S::Width;
    size_t n = 0;
    for (; rows <= S::FewRows && n + Widest <= columns; n += Widest) multiplyRest<S, S::FewRows, S::FewParts>(a, aStride, b + n, bStride, c + n, cStride, rows, inner);
    for (; n + Wide <= columns; n += Wide) multiplyColumns<S, S::Rows, S::Parts>(a, aStride, b + n, bStride, c + n, cStride, rows, inner);
    for (; n < columns; n += Unit) multiplyColumns<S, S::TallRows, Unit / S::Width>(a, aStride, b + n, bStride, c + n, cStride, rows, inner);
  }

  static void convolve(const float* const* inputs, const float* taps, size_t tapStride, size_t count, float* out, size_t n) {
    if (count == 4)
      convolveTaps<4>(inputs, taps, tapStride, 4, out, n);
    else
      convolveTaps<0>(inputs, taps, tapStride, count, out, n);
  }

  /// `Count` 0: only known at run time.
  template <size_t Count>
  static void convolveTaps(const float* const* inputs, const float* taps, size_t tapStride, size_t count, float* out, size_t n) {
    for (size_t i = 0; i < n; i += S::Width) {
      auto sum = S::zero();
      for (size_t j = 0; j < (Count ? Count : count); ++j) sum = S::fma(S::load(taps + j * tapStride + i), S::load(inputs[j] + i), sum);
      S::store(out + i, S::silu(sum));
    }
  }

  static void decay(const double* decays, double now, float factor, const float* keys, const float* queries, float* keysOut, float* queriesOut, size_t n) {
    for (size_t i = 0; i < n; i += S::Width) {
      const auto weight = S::decayed(decays + i, now);
      S::store(keysOut + i, S::mul(S::mul(S::set(factor), S::load(keys + i)), weight));
      S::store(queriesOut + i, S::mul(S::load(queries + i), weight));
    }
  }

  static void correct(float beta, float shown, const float* value, const float* byKey, const float* byQuery, float* into, float* sum, size_t n) {
    for (size_t i = 0; i < n; i += S::Width) {
      S::store(into + i, S::mul(S::set(beta), S::fma(S::set(-shown), S::load(byKey + i), S::load(value + i))));
      S::store(sum + i, S::mul(S::set(shown), S::load(byQuery + i)));
    }
  }

  static void multiplyEach(const float* x, const float* factors, float* out, size_t n) {
    for (size_t i = 0; i < n; i += S::Width) S::store(out + i, S::mul(S::load(x + i), S::load(factors + i)));
  }

  static void scale(float factor, float* x, size_t n) {
    for (size_t i = 0; i < n; i += S::Width) S::store(x + i, S::mul(S::set(factor), S::load(x + i)));
  }

  static float squares(const float* x, size_t n) {
    auto sum = S::zero();
    for (size_t i = 0; i < n; i += S::Width) sum = S::fma(S::load(x + i), S::load(x + i), sum);
    return S::sum(sum);
  }

  static void normalise(float factor, float epsilon, float* x, size_t n) { scale(factor / S::root(squares(x, n) + epsilon), x, n); }

  static void gatedNorm(const float* x, float epsilon, const float* norm, const float* gate, float* out, size_t n) {
    const auto factor = S::set(1 / S::root(squares(x, n) / static_cast<float>(n) + epsilon));
    for (size_t i = 0; i < n; i += S::Width) S::store(out + i, S::mul(S::mul(S::mul(S::load(x + i), factor), S::load(norm + i)), S::silu(S::load(gate + i))));
  }

  static void transpose(const float* rows, size_t rowStride, size_t count, size_t n, float* columns, size_t columnStride) {
    size_t i = 0;
    for (; i + Unit <= count; i += Unit)
      for (size_t d = 0; d < n; d += Unit) S::transposeUnit(rows + i * rowStride + d, rowStride, columns + d * columnStride + i, columnStride);
    for (; i < count; ++i)
      for (size_t d = 0; d < n; ++d) columns[d * columnStride + i] = rows[i * rowStride + d];
  }
};

template <class S> inline constexpr DeltaNetKernels kernelsOf = {Tile<S>::multiplyAdd, Tile<S>::convolve, Tile<S>::decay, Tile<S>::correct, Tile<S>::multiplyEach, Tile<S>::scale,
                                                                   Tile<S>::normalise, Tile<S>::gatedNorm, Tile<S>::transpose};

} // namespace mashbox::cpu::deltanet
