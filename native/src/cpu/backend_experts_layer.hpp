#pragma once

#include "cpu/backend_experts.hpp"
#include "cpu/backend_weights.hpp"
#include "model/experts_weights.hpp"

namespace mashbox::cpu {

/// The matrices and the rule of a layer's experts. Points into `store` and `weights`.
ExpertLayer expertLayer(const model::Experts& experts, const model::ExpertsWeights& weights, const MatrixStore& store);

/// What the layers with experts need at most; `used` is 0 where none has any.
ExpertCapacity expertCapacity(const model::BackendShape& shape);

} // namespace mashbox::cpu
