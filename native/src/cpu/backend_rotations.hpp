#pragma once

#include "cpu/thread_pool.hpp"
#include "model/rope.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::cpu {

/// The cosines and sines of every rope for the rows of one step.
class Rotations {
public:
  explicit Rotations(std::vector<model::Rotation> rotations);

  /// `positions`: one per row.
  void begin(std::span<const uint32_t> positions, ThreadPool& pool);
  /// Turns one head by rope `rope` at the position of `row`.
  void turn(uint32_t rope, uint32_t row, float* head) const;

private:
  struct Table {
    model::Rotation rotation;
    std::vector<float> cos, sin; ///< rows × pairs
  };

  std::vector<Table> tables_;
};

} // namespace mashbox::cpu
