#include "cpu/backend_rows.hpp"

namespace mashbox::cpu {

Result<Rows> Rows::create(uint32_t rows, uint32_t width) {
  Rows out;
  out.width_ = width;
  const uint64_t values = uint64_t{rows} * width;
  const auto reserve = [&](Region& region, uint64_t bytes) -> Result<void> {
    auto reserved = Region::reserve(bytes, "scratch memory");
    if (!reserved) return reserved.error();
    region = std::move(*reserved);
    return {};
  };
  if (auto done = reserve(out.values_, values * sizeof(float)); !done) return done.error();
  if (auto done = reserve(out.q_, values); !done) return done.error();
  if (auto done = reserve(out.scale_, values / 32 * sizeof(float)); !done) return done.error();
  if (auto done = reserve(out.sum16_, values / 16 * sizeof(int16_t)); !done) return done.error();
  return out;
}

Activations Rows::activations(uint32_t rows, bool int8, const Kernels& kernels, ThreadPool& pool) {
  Activations out;
  out.rows = rows;
  out.length = width_;
  out.f32 = data();
  if (!int8) return out;
  if (!quantized_)
    forRows(pool, rows, width_, [&](size_t row) {
      kernels.quantizeRow(this->row(row), width_, q_.as<int8_t>() + row * width_, scale_.as<float>() + row * (width_ / 32),
                          sum16_.as<int16_t>() + row * (width_ / 16));
    });
  quantized_ = true;
  out.q = q_.as<int8_t>();
  out.scale = scale_.as<float>();
  out.sum16 = sum16_.as<int16_t>();
  return out;
}

} // namespace mashbox::cpu
