#pragma once

#include "cpu/backend_delta_net.hpp"
#include "cpu/backend_weights.hpp"
#include "model/delta_net_weights.hpp"

#include <optional>
#include <span>
#include <vector>

namespace mashbox::cpu {

/// Outputs of a delta net's projections: `mixed` and `gate` (or all of it in `mixed`), `beta` and `alpha` (or both in `beta`).
template <class T> struct DeltaNetProjections {
  T mixed{}, gate{}, beta{}, alpha{};
};

/// The delta net layers of a model among all of its layers, over the states of one context.
class DeltaNetLayers {
public:
  static std::vector<model::DeltaNet> shapesOf(const model::BackendShape& shape);
  /// Nothing without such layers.
  static Result<std::optional<DeltaNetLayers>> create(const model::BackendShape& shape, const Kernels& kernels, ThreadPool& pool);
  /// The widest rows of every projection.
  static DeltaNetProjections<uint32_t> widths(const model::BackendShape& shape);

  DeltaNetStates& states() { return mixer_.states(); }
  const DeltaNetStates& states() const { return mixer_.states(); }
  /// Fills the states that are copies, and starts a step.
  void begin(std::span<const model::RowRange> ranges);
  void run(const model::DeltaNetCall& call, const MatrixStore& store, const DeltaNetProjections<const float*>& in, float* out);

private:
  explicit DeltaNetLayers(DeltaNetMixer mixer) : mixer_(std::move(mixer)) {}
  const float* taps(const model::DeltaNetCall& call, const MatrixStore& store);

  DeltaNetMixer mixer_;
  std::vector<uint32_t> places_;          ///< of every layer of the model among those with a delta net
  std::vector<LineVector<float>> taps_;   ///< convolution × convolutionWidth; empty until the layer first runs
};

/// The projections of one call, into these buffers.
std::vector<model::Projection> deltaNetProjections(const model::DeltaNetWeights& weights, const DeltaNetProjections<model::Buffer>& buffers);

} // namespace mashbox::cpu
