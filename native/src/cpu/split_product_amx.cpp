#if defined(__x86_64__)
#include "cpu/split_product.hpp"

#include <immintrin.h>

namespace mashbox::cpu {
namespace {

using split::Inner;
using split::Lines;
using split::Plane;

constexpr size_t RowBytes = 64;

size_t tilesOf(size_t n, size_t size) { return (n + size - 1) / size; }

/// Sixteen floats of two lines as one row of a tile's planes: the first's values before the second's.
inline __m512i round(__m512 first, __m512 second) { return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)); }

void splitRows(const float* a, size_t stride, size_t rows, size_t inner, uint16_t* tiles) {
  constexpr size_t Half = Inner / 2;
  const size_t runs = tilesOf(inner, Inner), padded = tilesOf(rows, Lines) * Lines;
  for (size_t r = 0; r < padded; ++r)
    for (size_t run = 0; run < runs; ++run) {
      uint16_t* const high = tiles + (r / Lines * runs + run) * 2 * Plane + r % Lines * Inner;
      if (r >= rows) {
        _mm512_store_si512(high, _mm512_setzero_si512());
        _mm512_store_si512(high + Plane, _mm512_setzero_si512());
        continue;
      }
      const float* const at = a + r * stride + run * Inner;
      const __m512 first = _mm512_loadu_ps(at);
      const __m512 second = run * Inner + Half < inner ? _mm512_loadu_ps(at + Half) : _mm512_setzero_ps();
      const __m512i h = round(first, second);
      const __m512i h0 = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(h)), 16);
      const __m512i h1 = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(h, 1)), 16);
      _mm512_store_si512(high, h);
      _mm512_store_si512(high + Plane, round(_mm512_sub_ps(first, _mm512_castsi512_ps(h0)), _mm512_sub_ps(second, _mm512_castsi512_ps(h1))));
    }
}

void splitColumns(const float* b, size_t stride, const float* factors, size_t inner, size_t columns, uint16_t* tiles) {
  alignas(64) uint16_t order[2 * Lines];
  for (size_t i = 0; i < 2 * Lines; ++i) order[i] = static_cast<uint16_t>(i / 2 + i % 2 * Lines);
  const __m512i interleaved = _mm512_load_si512(order), odd = _mm512_set1_epi32(static_cast<int>(0xffff0000));
  const size_t runs = tilesOf(inner, Inner);
  const auto line = [&](size_t k, size_t n) {
    if (k >= inner) return _mm512_setzero_ps();
    const __m512 values = _mm512_loadu_ps(b + k * stride + n);
    return factors ? _mm512_mul_ps(values, _mm512_set1_ps(factors[k])) : values;
  };
  for (size_t k = 0; k < runs * Inner; k += 2)
    for (size_t n = 0; n < columns; n += Lines) {
      uint16_t* const high = tiles + (n / Lines * runs + k / Inner) * 2 * Plane + k % Inner * Lines;
      const __m512 first = line(k, n), second = line(k + 1, n);
      const __m512i h = _mm512_permutexvar_epi16(interleaved, round(first, second));
      const __m512 l0 = _mm512_sub_ps(first, _mm512_castsi512_ps(_mm512_slli_epi32(h, 16)));
      const __m512 l1 = _mm512_sub_ps(second, _mm512_castsi512_ps(_mm512_and_si512(h, odd)));
      _mm512_store_si512(high, h);
      _mm512_store_si512(high + Plane, _mm512_permutexvar_epi16(interleaved, round(l0, l1)));
    }
}

/// Tiles 0 to 3 hold C, 4 and 5 a plane of A, 6 and 7 a plane of B. (Own assembly: GCC 12 takes no note of what its intrinsics read.)
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};
};

template <int Tile> void zero() { asm volatile("tilezero %%tmm%c0" : : "i"(Tile)); }
template <int Tile> void load(const void* at, size_t rowBytes) { asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(Tile), "r"(at), "r"(rowBytes) : "memory"); }
template <int Tile> void store(void* at, size_t rowBytes) { asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(Tile), "r"(at), "r"(rowBytes) : "memory"); }
template <int C, int A, int B> void add() { asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B)); }

/// The products of one plane of A with one of B.
template <size_t RowTiles, size_t ColumnTiles> void addAll() {
  add<0, 4, 6>();
  if constexpr (ColumnTiles == 2) add<1, 4, 7>();
  if constexpr (RowTiles == 2) add<2, 5, 6>();
  if constexpr (RowTiles == 2 && ColumnTiles == 2) add<3, 5, 7>();
}

template <size_t RowTiles> void loadRows(const uint16_t* a, size_t runs) {
  load<4>(a, RowBytes);
  if constexpr (RowTiles == 2) load<5>(a + runs * 2 * Plane, RowBytes);
}

/// A few rows pass so fast that their loads must begin a run before.
void prefetch(const uint16_t* tile) {
  for (size_t i = 0; i < 2 * Plane; i += Inner) _mm_prefetch(tile + i, _MM_HINT_T0);
}

template <size_t ColumnTiles> void loadColumns(const uint16_t* b, size_t runs) {
  load<6>(b, RowBytes);
  if constexpr (ColumnTiles == 2) load<7>(b + runs * 2 * Plane, RowBytes);
}

template <size_t RowTiles, size_t ColumnTiles> void multiplyTiles(const uint16_t* a, const uint16_t* b, size_t runs, float* c, size_t stride, bool sum) {
  const auto each = [&](auto&& one) {
    one.template operator()<0>(c);
    if constexpr (ColumnTiles == 2) one.template operator()<1>(c + Lines);
    if constexpr (RowTiles == 2) one.template operator()<2>(c + Lines * stride);
    if constexpr (RowTiles == 2 && ColumnTiles == 2) one.template operator()<3>(c + Lines * stride + Lines);
  };
  if (sum)
    each([&]<int Tile>(float* at) { load<Tile>(at, stride * sizeof(float)); });
  else
    each([&]<int Tile>(float*) { zero<Tile>(); });
  for (size_t run = 0; run < runs; ++run, a += 2 * Plane, b += 2 * Plane) {
    if constexpr (RowTiles == 1) {
      prefetch(b + 2 * Plane);
      if constexpr (ColumnTiles == 2) prefetch(b + (runs + 1) * 2 * Plane);
    }
    loadRows<RowTiles>(a, runs);
    loadColumns<ColumnTiles>(b + Plane, runs);
    addAll<RowTiles, ColumnTiles>();
    loadColumns<ColumnTiles>(b, runs);
    addAll<RowTiles, ColumnTiles>();
    loadRows<RowTiles>(a + Plane, runs);
    addAll<RowTiles, ColumnTiles>();
  }
  each([&]<int Tile>(float* at) { store<Tile>(at, stride * sizeof(float)); });
}

template <size_t ColumnTiles> void multiplyColumns(const uint16_t* a, const uint16_t* b, size_t runs, size_t rows, float* c, size_t stride, bool sum) {
  size_t r = 0;
  for (; r + Lines < rows; r += 2 * Lines) multiplyTiles<2, ColumnTiles>(a + r / Lines * runs * 2 * Plane, b, runs, c + r * stride, stride, sum);
  if (r < rows) multiplyTiles<1, ColumnTiles>(a + r / Lines * runs * 2 * Plane, b, runs, c + r * stride, stride, sum);
}

void multiply(const uint16_t* a, const uint16_t* b, size_t rows, size_t inner, size_t columns, float* c, size_t stride, bool sum) {
  TileConfiguration configuration;
  for (size_t tile = 0; tile < 8; ++tile) configuration.rowBytes[tile] = RowBytes, configuration.rows[tile] = Lines;
  asm volatile("ldtilecfg %0" : : "m"(configuration));
  const size_t runs = tilesOf(inner, Inner);
  size_t n = 0;
  for (; n + 2 * Lines <= columns; n += 2 * Lines) multiplyColumns<2>(a, b + n / Lines * runs * 2 * Plane, runs, rows, c + n, stride, sum);
  if (n < columns) multiplyColumns<1>(a, b + n / Lines * runs * 2 * Plane, runs, rows, c + n, stride, sum);
  asm volatile("tilerelease");
}

} // namespace

const SplitKernels amxSplit{splitRows, splitColumns, multiply};

} // namespace mashbox::cpu
#endif
