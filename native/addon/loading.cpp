#include "loading.hpp"

#include "cpu/cores.hpp"
#include "model/config.hpp"
#include "sched/context_decoder.hpp"

#include <cstdlib>
#include <new>

namespace mashbox::addon {
namespace {

Result<LoadedModel> load(LoadArguments arguments) {
  const auto isa = cpu::chooseIsa(std::getenv("MASHBOX_ISA"));
  if (!isa) return isa.error();
  arguments.load.isa = *isa;
  if (arguments.load.threads == 0) arguments.load.threads = cpu::availableCores();
  auto model = model::Model::load(arguments.load);
  if (!model) return model.error();
  auto context = model::Context::create(*model, arguments.context);
  if (!context) return context.error();

  arguments.context.contextLength = (*context)->contextLength();
  const auto& config = (*model)->config();
  const auto memory = (*model)->plan(arguments.context);
  ModelInfo info{
    .architecture = config.architecture,
    .isa = cpu::isaName(*isa),
    .vocabularySize = config.vocabulary,
    .layers = static_cast<uint32_t>(config.layers.size()),
    .contextLength = arguments.context.contextLength,
    .trainedContextLength = config.contextLength,
    .slots = arguments.context.slots,
    .threads = arguments.load.threads,
    .weightBytes = memory.weights,
    .kvCacheBytes = memory.kvCache + memory.states,
    .scratchBytes = memory.scratch,
    .experts = (*model)->expertPaths(),
  };
  return LoadedModel{std::make_unique<sched::ContextDecoder>(std::move(*context), arguments.context.batchTokens), std::move(info)};
}

} // namespace

Result<LoadedModel> loadModel(LoadArguments arguments) {
  try {
    return load(std::move(arguments));
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::OutOfMemory, "out of memory while loading the model", "path"};
  }
}

} // namespace mashbox::addon
