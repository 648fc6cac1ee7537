#pragma once

#include "cpu/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace mashbox::test {

using Random = std::mt19937;

inline std::vector<float> randomValues(size_t n, Random& random, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

/// Activation rows in both forms, quantized by `kernels`.
struct Rows {
  std::vector<float> f32, scale;
  std::vector<int8_t> q;
  std::vector<int16_t> sum16;
  cpu::Activations view;

  Rows(const cpu::Kernels& kernels, std::vector<float> values, size_t rows) : f32(std::move(values)) {
    const size_t length = f32.size() / rows;
    view = {rows, length, f32.data(), nullptr, nullptr, nullptr};
    if (length % 32 != 0) return;
    scale.resize(f32.size() / 32);
    q.resize(f32.size());
    sum16.resize(f32.size() / 16);
    for (size_t m = 0; m < rows; ++m)
      kernels.quantizeRow(f32.data() + m * length, length, q.data() + m * length, scale.data() + m * length / 32, sum16.data() + m * length / 16);
    view = {rows, length, f32.data(), q.data(), scale.data(), sum16.data()};
  }

  /// What a dot product of row m sees at k.
  double value(size_t m, size_t k, bool int8) const {
    const size_t i = m * view.length + k;
    return int8 ? double(q[i]) * scale[i / 32] : f32[i];
  }
  cpu::Activations one(size_t m) const {
    const size_t k = view.length;
    return {1, k, f32.data() + m * k, q.data() + m * k, scale.data() + m * (k / 32), sum16.data() + m * (k / 16)};
  }
};

} // namespace mashbox::test
