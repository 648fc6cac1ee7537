#include "cpu/backend_rotations.hpp"

#include <cmath>
#include <utility>

namespace mashbox::cpu {

Rotations::Rotations(std::vector<model::Rotation> rotations) {
  for (model::Rotation& rotation : rotations) tables_.push_back({std::move(rotation), {}, {}});
}

void Rotations::begin(std::span<const uint32_t> positions, ThreadPool& pool) {
  for (Table& table : tables_) {
    const model::Rotation& rotation = table.rotation;
    const size_t pairs = rotation.frequencies.size();
    table.cos.resize(positions.size() * pairs);
    table.sin.resize(positions.size() * pairs);
    constexpr size_t GrainAngles = 512;
    pool.parallelFor(positions.size(), 1 + GrainAngles / (pairs + 1), [&](size_t begin, size_t end, unsigned) {
      for (size_t row = begin; row < end; ++row)
        for (size_t i = 0; i < pairs; ++i) {
          const double angle = positions[row] * rotation.frequencies[i];
          table.cos[row * pairs + i] = static_cast<float>(std::cos(angle) * rotation.magnitude);
          table.sin[row * pairs + i] = static_cast<float>(std::sin(angle) * rotation.magnitude);
        }
    });
  }
}

void Rotations::turn(uint32_t rope, uint32_t row, float* head) const {
  const Table& table = tables_[rope];
  const size_t pairs = table.rotation.frequencies.size();
  const float* cos = table.cos.data() + row * pairs;
  const float* sin = table.sin.data() + row * pairs;
  const bool adjacent = table.rotation.pairing == model::RopePairing::Adjacent;
  const size_t step = adjacent ? 2 : 1, distance = adjacent ? 1 : pairs;
  for (size_t i = 0; i < pairs; ++i) {
    const float a = head[i * step], b = head[i * step + distance];
    head[i * step] = a * cos[i] - b * sin[i];
    head[i * step + distance] = a * sin[i] + b * cos[i];
  }
}

} // namespace mashbox::cpu
