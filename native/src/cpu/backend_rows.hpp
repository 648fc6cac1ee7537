#pragma once

#include "cpu/backend_memory.hpp"
#include "cpu/kernels.hpp"
#include "cpu/thread_pool.hpp"

#include <cstddef>

namespace mashbox::cpu {

/// Rows of float32 values and, made on demand, their 8-bit form. Rows lie side by side: their width is that of what was written last.
class Rows {
public:
  /// Room for `rows` rows of at most `width` values.
  static Result<Rows> create(uint32_t rows, uint32_t width);

  uint32_t width() const { return width_; }
  float* data() const { return values_.as<float>(); }
  float* row(size_t index) const { return data() + index * width_; }
  /// The values will change: the 8-bit form is stale.
  float* write() {
    quantized_ = false;
    return data();
  }
  /// New rows of `width` values will be written.
  float* write(size_t width) {
    width_ = static_cast<uint32_t>(width);
    return write();
  }
  /// The first `rows` rows as kernel input; `int8` asks for the 8-bit form.
  Activations activations(uint32_t rows, bool int8, const Kernels& kernels, ThreadPool& pool);

private:
  uint32_t width_ = 0;
  bool quantized_ = false;
  Region values_, q_, scale_, sum16_;
};

/// Runs `body(row)` for every row: on the calling thread when all rows together are small, else on the team.
template <class Body> void forRows(ThreadPool& pool, size_t rows, size_t width, const Body& body) {
  constexpr size_t SmallRows = 8192; // values; handing them to another thread costs more than working on them
  if (rows * width <= SmallRows) {
    for (size_t row = 0; row < rows; ++row) body(row);
    return;
  }
  pool.parallelFor(rows, 1 + SmallRows / 4 / width, [&](size_t begin, size_t end, unsigned) {
    for (size_t row = begin; row < end; ++row) body(row);
  });
}

} // namespace mashbox::cpu
