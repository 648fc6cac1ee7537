#pragma once

#include "cpu/kernels.hpp"
#include "model/backend.hpp"

#include <memory>

namespace mashbox::cpu {

/// The CPU as a device: weights stay where they are mapped. Every backend that it opens has a team of `threads` of its own.
/// `Isa::Scalar` is the reference implementation.
std::unique_ptr<model::Device> createDevice(Isa isa, unsigned threads);

} // namespace mashbox::cpu
