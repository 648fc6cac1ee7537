#pragma once

#include "gguf/file.hpp"
#include "model/backend.hpp"
#include "model/config.hpp"
#include "model/experts_paths.hpp"
#include "model/model.hpp"
#include "model/weights.hpp"

#include <memory>
#include <vector>

namespace mashbox::model {

struct Model::Impl {
  gguf::File file; ///< owns the bytes that the device's weights point to
  Config config;
  std::vector<Rotation> rotations; ///< of Config::ropes
  std::unique_ptr<Device> device;
  Weights weights;
  uint64_t weightBytes; ///< of the tensors that are used
  ExpertPaths expertPaths;

  /// For slots of `contextLength` tokens.
  BackendShape shape(const ContextOptions& options, uint32_t contextLength) const;
};

} // namespace mashbox::model
