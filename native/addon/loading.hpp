#pragma once

#include "arguments.hpp"
#include "model/experts_paths.hpp"
#include "sched/decoder.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace mashbox::addon {

/// `NativeModelInfo` of src/engine/Native.ts.
struct ModelInfo {
  std::string architecture, isa;
  uint32_t vocabularySize, layers, contextLength, trainedContextLength, slots, threads;
  uint64_t weightBytes, kvCacheBytes, scratchBytes;
  model::ExpertPaths experts;
};

struct LoadedModel {
  std::unique_ptr<sched::Decoder> decoder;
  ModelInfo info;
};

/// Loads a model and allocates its context; may take long. Runs on any thread.
Result<LoadedModel> loadModel(LoadArguments arguments);

} // namespace mashbox::addon
