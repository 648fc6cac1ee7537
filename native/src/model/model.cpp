#include "model/model.hpp"

#include "cpu/backend.hpp"
#include "gguf/file.hpp"
#include "gguf/vocabulary.hpp"
#include "model/memory.hpp"
#include "model/model_impl.hpp"
#include "model/pages.hpp"

namespace mashbox::model {

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const LoadOptions& options) {
  auto file = gguf::File::open(options.path);
  if (!file) return file.error();
  if (auto checked = gguf::checkVocabulary(*file); !checked) return checked.error();
  auto config = readConfig(*file);
  if (!config) return config.error();
  auto tensors = bindTensors(*file, *config);
  if (!tensors) return tensors.error();

  readPages(file->tensors(), options.threads, options.onProgress);
  auto device = cpu::createDevice(options.isa, options.threads);
  auto weights = placeWeights(*tensors, *device);
  if (!weights) return weights.error();
  const std::vector<float> factors = tensors->ropeFactors ? vectorValues(*tensors->ropeFactors) : std::vector<float>();
  std::vector<Rotation> rotations;
  for (const Rope& rope : config->ropes) rotations.push_back(rotationOf(rope, factors));
  auto impl = std::make_unique<Impl>(Impl{std::move(*file), std::move(*config), std::move(rotations), std::move(device), std::move(*weights),
                                          findExpertPaths(*tensors, options.isa)});
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

const Config& Model::config() const { return impl_->config; }
const ExpertPaths& Model::expertPaths() const { return impl_->expertPaths; }

BackendShape Model::Impl::shape(const ContextOptions& options, uint32_t blocks) const {
  return {options.batchTokens, blocks, config.width, config.layers, options.kvType, rotations};
}

MemoryPlan Model::plan(const ContextOptions& options) const {
  const uint64_t blockBytes = impl_->device->blockBytes(impl_->shape(options, 0));
  return planMemory(impl_->config, options, impl_->file.tensorBytes(), blockBytes, impl_->device->availableMemory());
}

} // namespace mashbox::model
