#include "cpu/split_product.hpp"

#include "cpu/line_vector.hpp"
#include "model_session.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using cpu::LineVector;
using cpu::SplitKernels;
using test::check;
using test::Test;

using Random = std::mt19937;

struct Shape {
  size_t rows, inner, columns;
  std::string name() const { return std::to_string(rows) + " × " + std::to_string(inner) + " × " + std::to_string(columns); }
};

Shape randomShape(Random& random) { return {1 + random() % 130, 16 * (1 + random() % 9), 16 * (1 + random() % 9)}; }

/// Values over `spread` powers of two to both sides of one.
std::vector<float> randomValues(size_t n, Random& random, int spread) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = std::ldexp(normal(random), spread == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(2 * spread)) - spread);
  return values;
}

/// Rows of A · B (+ C), where B has its columns at a stride wider than they are.
LineVector<float> product(const SplitKernels& split, const Shape& shape, std::span<const float> a, std::span<const float> b, size_t firstRow, size_t rows, float start,
                          std::span<const float> factors = {}) {
  const size_t stride = shape.columns + 16;
  LineVector<uint16_t> rowTiles(cpu::splitSize(rows, shape.inner)), columnTiles(cpu::splitSize(shape.columns, shape.inner));
  LineVector<float> c((rows + 15) / 16 * 16 * shape.columns, start);
  split.splitRows(a.data() + firstRow * shape.inner, shape.inner, rows, shape.inner, rowTiles.data());
  split.splitColumns(b.data(), stride, factors.empty() ? nullptr : factors.data(), shape.inner, shape.columns, columnTiles.data());
  split.multiply(rowTiles.data(), columnTiles.data(), rows, shape.inner, shape.columns, c.data(), shape.columns, start != 0);
  c.resize(rows * shape.columns);
  return c;
}

std::vector<std::pair<std::string, const SplitKernels*>> implementations() {
  std::vector<std::pair<std::string, const SplitKernels*>> all{{"model", &cpu::modelSplit}};
  if (const SplitKernels* tiles = cpu::splitKernels(cpu::detectIsa()))
    all.emplace_back("tiles", tiles);
  else
    std::printf("note    this CPU has no tiles: their model alone is tested\n");
  return all;
}

const Test accuracy{"split products: random shapes are within 2^-15 of the exact products", [] {
  Random random(1);
  const auto all = implementations();
  for (int i = 0; i < (test::Sanitized ? 6 : 30); ++i) {
    const Shape shape = randomShape(random);
    const size_t stride = shape.columns + 16;
    const float start = i % 2 ? 0.75f : 0;
    const auto a = randomValues(shape.rows * shape.inner, random, i % 3 * 4), b = randomValues(shape.inner * stride, random, i % 3 * 4);
    for (const auto& [name, split] : all) {
      const auto got = product(*split, shape, a, b, 0, shape.rows, start);
      for (size_t r = 0; r < shape.rows; ++r)
        for (size_t n = 0; n < shape.columns; ++n) {
          double exact = start, magnitude = std::abs(start);
          for (size_t k = 0; k < shape.inner; ++k) {
            const double each = static_cast<double>(a[r * shape.inner + k]) * b[k * stride + n];
            exact += each, magnitude += std::abs(each);
          }
          check(std::abs(got[r * shape.columns + n] - exact) <= 0x1p-15 * magnitude, name + " " + shape.name());
        }
    }
  }
}};

const Test model{"split products: the CPU's tiles equal their model bit for bit, with numbers of every size", [] {
  Random random(2);
  const SplitKernels* const tiles = cpu::splitKernels(cpu::detectIsa());
  if (!tiles) return test::skip("this CPU has no tiles");
  for (const int spread : {0, 4, 30, 60, 75}) {
    for (int i = 0; i < (test::Sanitized ? 2 : 8); ++i) {
      const Shape shape = randomShape(random);
      const auto a = randomValues(shape.rows * shape.inner, random, spread), b = randomValues(shape.inner * (shape.columns + 16), random, spread);
      const auto factors = randomValues(shape.inner, random, 2);
      for (const float start : {0.0f, -1.5f})
        check(test::sameBits(product(*tiles, shape, a, b, 0, shape.rows, start, factors), product(cpu::modelSplit, shape, a, b, 0, shape.rows, start, factors)) &&
                test::sameBits(product(*tiles, shape, a, b, 0, shape.rows, start), product(cpu::modelSplit, shape, a, b, 0, shape.rows, start)),
              shape.name() + " over " + std::to_string(spread) + " powers of two");
    }
  }
}};

const Test alone{"split products: a row alone equals the row among others", [] {
  Random random(3);
  for (const auto& [name, split] : implementations()) {
    const Shape shape{37, 80, 112};
    const auto a = randomValues(shape.rows * shape.inner, random, 3), b = randomValues(shape.inner * (shape.columns + 16), random, 3);
    const auto whole = product(*split, shape, a, b, 0, shape.rows, 0);
    for (size_t row = 0; row < shape.rows; ++row)
      for (const size_t rows : {size_t{1}, size_t{3}}) {
        const size_t count = std::min(rows, shape.rows - row);
        check(test::sameBits(product(*split, shape, a, b, row, count, 0), std::span(whole).subspan(row * shape.columns, count * shape.columns)), name + " row " + std::to_string(row));
      }
  }
}};

} // namespace
} // namespace mashbox
