#include "cpu/split_product.hpp"

#include "base/float16.hpp"

#include <cmath>
#include <limits>

namespace mashbox::cpu {
namespace {

using split::Inner;
using split::Lines;
using split::Plane;

float withoutDenormals(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

void store(float x, uint16_t* high) {
  high[0] = floatToBfloat16(withoutDenormals(x));
  high[Plane] = floatToBfloat16(withoutDenormals(x - bfloat16ToFloat(high[0])));
}

size_t tilesOf(size_t n, size_t size) { return (n + size - 1) / size; }

void splitRows(const float* a, size_t stride, size_t rows, size_t inner, uint16_t* tiles) {
  const size_t runs = tilesOf(inner, Inner);
  for (size_t r = 0; r < tilesOf(rows, Lines) * Lines; ++r)
    for (size_t k = 0; k < runs * Inner; ++k)
      store(r < rows && k < inner ? a[r * stride + k] : 0, tiles + (r / Lines * runs + k / Inner) * 2 * Plane + r % Lines * Inner + k % Inner);
}

void splitColumns(const float* b, size_t stride, const float* factors, size_t inner, size_t columns, uint16_t* tiles) {
  const size_t runs = tilesOf(inner, Inner);
  for (size_t k = 0; k < runs * Inner; ++k)
    for (size_t n = 0; n < columns; ++n)
      store(k < inner ? b[k * stride + n] * (factors ? factors[k] : 1) : 0, tiles + (n / Lines * runs + k / Inner) * 2 * Plane + k % Inner / 2 * 2 * Lines + n % Lines * 2 + k % 2);
}

float tileSum(const uint16_t* row, const uint16_t* column, float sum) {
  float parts[2] = {};
  for (size_t k = 0; k < Inner; ++k)
    parts[k % 2] = withoutDenormals(std::fma(bfloat16ToFloat(row[k]), bfloat16ToFloat(column[k / 2 * 2 * Lines + k % 2]), parts[k % 2]));
  return withoutDenormals(withoutDenormals(sum) + withoutDenormals(parts[0] + parts[1]));
}

void multiply(const uint16_t* a, const uint16_t* b, size_t rows, size_t inner, size_t columns, float* c, size_t stride, bool add) {
  const size_t runs = tilesOf(inner, Inner);
  for (size_t r = 0; r < tilesOf(rows, Lines) * Lines; ++r)
    for (size_t n = 0; n < columns; ++n) {
      float sum = add ? c[r * stride + n] : 0;
      for (size_t run = 0; run < runs; ++run) {
        const uint16_t* const row = a + (r / Lines * runs + run) * 2 * Plane + r % Lines * Inner;
        const uint16_t* const column = b + (n / Lines * runs + run) * 2 * Plane + n % Lines * 2;
        sum = tileSum(row, column + Plane, sum);
        sum = tileSum(row, column, sum);
        sum = tileSum(row + Plane, column, sum);
      }
      c[r * stride + n] = sum;
    }
}

} // namespace

const SplitKernels modelSplit{splitRows, splitColumns, multiply};

const SplitKernels* splitKernels(Isa isa) {
#if defined(__x86_64__)
  if (kernels(isa).isa == Isa::Amx) return &amxSplit;
#endif
  static_cast<void>(isa);
  return nullptr;
}

} // namespace mashbox::cpu
