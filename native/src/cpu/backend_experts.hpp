#pragma once

#include "cpu/backend_experts_route.hpp"
#include "cpu/backend_memory.hpp"
#include "cpu/backend_rows.hpp"
#include "cpu/kernels.hpp"
#include "cpu/thread_pool.hpp"
#include "model/activation.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mashbox::cpu {

/// One matrix per expert, all of one shape: row r of expert e lies at experts[e] + (firstRow + r) · rowBytes.
/// An output is scale · W x + bias.
struct ExpertMatrices {
  quant::Type type = quant::Type::F32;
  const std::byte* const* experts = nullptr;
  size_t rowBytes = 0, firstRow = 0;
  size_t rows = 0;              ///< outputs
  const float* bias = nullptr;  ///< expert e's begin at bias + e · biasStride
  size_t biasStride = 0;
  const float* scale = nullptr; ///< one per expert
};

/// down(activation(gate x, up x)) of every expert.
struct GatedExperts {
  ExpertMatrices gate, up, down;
  model::Activation activation = model::Activation::Silu;

  bool present() const { return gate.experts != nullptr; }
};

struct ExpertLayer {
  RouterRule rule;
  GatedExperts routed;
  GatedExperts shared; ///< one expert that every row uses, or none
};

/// Sizes of what one context's layers need at most.
struct ExpertCapacity {
  uint32_t batchRows = 0, width = 0;
  uint32_t experts = 0, used = 0, feedForward = 0, sharedFeedForward = 0;
};

/// Rows of scratch memory with their 8-bit form beside them; their length may differ from use to use.
class ExpertRows {
public:
  static Result<ExpertRows> create(uint64_t values);

  float* values() const { return values_.as<float>(); }
  /// Copies row `from` of x to row `to`, in the forms that x has and that are wanted.
  void copy(const Activations& x, size_t from, size_t to, bool floats, bool int8);
  /// Quantizes values [from, to) of a row; both are multiples of 32 and so is the length.
  void quantize(const Kernels& kernels, size_t row, size_t length, size_t from, size_t to);
  Activations view(size_t first, size_t rows, size_t length) const;

private:
  Region values_, q_, scale_, sum16_;
};

/// The feed-forward layer of a mixture of experts. Every product of a row and an expert is computed as if the row were alone, and a row's
/// experts are added up by rising id, then the shared one: results depend neither on the other rows nor on threads.
class ExpertRunner {
public:
  static Result<ExpertRunner> create(const ExpertCapacity& capacity, const Kernels& kernels, ThreadPool& pool);

  /// out (or, with `add`, out +)= Σ weight · expert(in) + shared(in). `logits` holds rows × experts router logits, which are
  /// overwritten; `sharedGate` one logit per row, whose sigmoid weighs the shared expert, or is null. `out` is not `in`.
  void run(const ExpertLayer& layer, uint32_t rows, float* logits, const float* sharedGate, Rows& in, Rows& out, bool add);

private:
  /// Rows that one expert works on.
  struct Task {
    const GatedExperts* stack;
    size_t expert;
    Activations x;
    ExpertRows* hidden;
    float* up;
    size_t firstHidden; ///< row of `hidden` (and `up`)
  };

  ExpertRunner(const ExpertCapacity& capacity, const Kernels& kernels, ThreadPool& pool) : capacity_(capacity), kernels_(&kernels), pool_(&pool) {}
  void route(const ExpertLayer& layer, uint32_t rows, float* logits);
  void plan(const ExpertLayer& layer, uint32_t rows, Rows& in);
  void gated(const Task& task, size_t from, size_t to) const;
  void down(uint32_t rows, const float* sharedGate, float* out, size_t from, size_t to, bool add, float* tile) const;
  void multiply(const ExpertMatrices& matrices, size_t expert, const Activations& x, size_t from, size_t to, float* out, size_t stride) const;
  size_t grain(size_t units, size_t unitBytes, uint32_t rows) const;

  ExpertCapacity capacity_;
  const Kernels* kernels_;
  ThreadPool* pool_;
  std::vector<ExpertChoice> choices_;
  ExpertGroups groups_;
  std::vector<Task> tasks_; ///< those of the groups, then the shared expert's
  ExpertRows gathered_, hidden_, sharedHidden_;
  Region up_, sharedUp_, tiles_;
};

} // namespace mashbox::cpu
