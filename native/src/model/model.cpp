#include "model/model.hpp"

#include "cpu/backend.hpp"
#include "gguf/file.hpp"
#include "gguf/vocabulary.hpp"
#include "model/memory.hpp"
#include "model/model_impl.hpp"
#include "model/pages.hpp"

namespace mashbox::model {

namespace {

/// A file of which everything but the weights' values has been checked.
struct Checked {
  gguf::File file;
  Config config;
  Tensors tensors; ///< point into the file
};

Result<Checked> check(const std::string& path) {
  auto file = gguf::File::open(path);
  if (!file) return file.error();
  if (auto checked = gguf::checkVocabulary(*file); !checked) return checked.error();
  auto config = readConfig(*file);
  if (!config) return config.error();
  auto tensors = bindTensors(*file, *config);
  if (!tensors) return tensors.error();
  return Checked{std::move(*file), std::move(*config), std::move(*tensors)};
}

std::vector<Rotation> rotationsOf(const Checked& checked) {
  const std::vector<float> factors = checked.tensors.ropeFactors ? vectorValues(*checked.tensors.ropeFactors) : std::vector<float>();
  std::vector<Rotation> rotations;
  for (const Rope& rope : checked.config.ropes) rotations.push_back(rotationOf(rope, factors));
  return rotations;
}

} // namespace

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const LoadOptions& options) {
  auto checked = check(options.path);
  if (!checked) return checked.error();
  readPages(checked->tensors.used, options.threads, options.onProgress);
  auto device = cpu::createDevice(options.isa, options.threads);
  auto weights = placeWeights(checked->tensors, *device);
  if (!weights) return weights.error();
  auto rotations = rotationsOf(*checked);
  auto paths = findExpertPaths(checked->tensors, options.isa);
  const uint64_t bytes = checked->tensors.bytes();
  auto impl = std::make_unique<Impl>(Impl{std::move(checked->file), std::move(checked->config), std::move(rotations), std::move(device), std::move(*weights), bytes,
                                          std::move(paths)});
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

Result<Inspection> Model::inspect(const std::string& path, const ContextOptions& options) {
  auto checked = check(path);
  if (!checked) return checked.error();
  auto rotations = rotationsOf(*checked);
  const uint64_t bytes = checked->tensors.bytes();
  const Model model(std::make_unique<Impl>(Impl{std::move(checked->file), std::move(checked->config), std::move(rotations), cpu::createDevice(cpu::detectIsa(), 1), {}, bytes, {}}));
  const Config& config = model.config();
  return Inspection{config.architecture, static_cast<uint32_t>(config.layers.size()), config.predictionBlocks, config.vocabulary, config.contextLength, model.plan(options)};
}

const Config& Model::config() const { return impl_->config; }
const gguf::File& Model::file() const { return impl_->file; }
const ExpertPaths& Model::expertPaths() const { return impl_->expertPaths; }

BackendShape Model::Impl::shape(const ContextOptions& options, uint32_t contextLength) const {
  const uint32_t window = config.window();
  const uint32_t windowBlocks = window ? kv::WindowPool::blocksPerSequence(window, options.batchTokens, contextLength) : 0;
  const uint32_t states = config.recurrent() ? options.slots + options.snapshots : 0;
  return {options.batchTokens, kv::blocksOf(contextLength) * options.slots, windowBlocks * options.slots, states, config.width, config.layers,
          options.kvType, rotations};
}

MemoryPlan Model::plan(const ContextOptions& options) const {
  const BackendShape shape = impl_->shape(options, 0);
  const Device& device = *impl_->device;
  return planMemory(impl_->config, options, impl_->weightBytes, device.blockBytes(shape), device.availableMemory(), device.stateBytes(shape));
}

} // namespace mashbox::model
