#include "cpu/cores.hpp"
#include "gguf/file.hpp"
#include "model/config.hpp"
#include "model/model.hpp"
#include "random_model.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

// What a mid-size random model of a family reaches on this machine, as one line of JSON.
// Usage: mashbox_family_bench FAMILY FOLDER [LENGTH…]: a model that is not yet in FOLDER is written there first. LENGTHs are those of
// prompts whose cost per token is measured besides. Without arguments: the families. MASHBOX_ISA chooses the tier.
namespace {

using namespace mashbox;

constexpr uint32_t BatchTokens = 256, PromptTokens = 512, NewTokens = 32, WarmTokens = 16, Runs = 3;
/// Seconds after which no further run is begun.
constexpr double Patience = 5;

double secondsOf(const auto& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Best seconds of `measure(run)`, which says how long its measured part took.
double best(const auto& measure) {
  double least = 1e30, spent = 0;
  for (uint32_t run = 0; run < Runs && spent < Patience; ++run) {
    const double seconds = measure(run);
    least = std::min(least, seconds);
    spent += seconds;
  }
  return least;
}

class Bench {
public:
  explicit Bench(model::Context& context) : context_(context), tokens_(static_cast<int32_t>(context.model().config().tokens)) {}

  /// Best seconds for a prompt of `length`.
  double prefill(uint32_t length) {
    return best([&](uint32_t run) {
      kv::Sequence sequence(context_.pool());
      return secondsOf([&] { feed(sequence, length, BatchTokens, run); });
    });
  }

  /// Best seconds per token after a short prompt.
  double decode() {
    return best([&](uint32_t run) {
      kv::Sequence sequence(context_.pool());
      feed(sequence, WarmTokens, BatchTokens, run);
      return secondsOf([&] { feed(sequence, NewTokens, 1, run + 100); });
    }) / NewTokens;
  }

private:
  void feed(kv::Sequence& sequence, uint32_t count, uint32_t chunk, uint32_t seed) {
    std::vector<int32_t> tokens(count);
    for (uint32_t i = 0; i < count; ++i) tokens[i] = static_cast<int32_t>((uint64_t{i} * 7919 + seed * 104'729 + 17) % static_cast<uint64_t>(tokens_));
    for (uint32_t at = 0; at < count; at += chunk) {
      const model::Segment segment{&sequence, std::span(tokens).subspan(at, std::min(chunk, count - at)), model::Logits::Last};
      if (auto logits = context_.forward({&segment, 1}); !logits) {
        std::fprintf(stderr, "%s\n", logits.error().message.c_str());
        std::exit(1);
      }
    }
  }

  model::Context& context_;
  int32_t tokens_;
};

/// Bytes of weights that one token reads: everything but the embeddings, of which it reads a row, and the experts that it does not use.
double bytesPerToken(const std::string& path, const model::Config& config) {
  const auto file = gguf::File::open(path);
  double bytes = 0;
  const auto experts = std::find_if(config.layers.begin(), config.layers.end(), [](const model::LayerConfig& layer) { return layer.experts.has_value(); });
  const double share = experts == config.layers.end() ? 1 : double(experts->experts->used) / experts->experts->count;
  for (const gguf::Tensor& tensor : file->tensors()) {
    if (tensor.name == "per_layer_token_embd.weight" || (tensor.name == "token_embd.weight" && !config.tied)) continue;
    bytes += double(tensor.bytes) * (tensor.name.find("_exps.") != std::string_view::npos ? share : 1);
  }
  return bytes;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    for (const std::string& name : bench::familyNames()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const std::string family = argv[1], path = (std::filesystem::path(argv[2]) / (family + ".gguf")).string();
  if (!std::filesystem::exists(path)) {
    const std::string part = path + ".part";
    if (!bench::randomFamily(family).write(part)) return std::fprintf(stderr, "%s cannot be written\n", part.c_str()), 1;
    std::filesystem::rename(part, path);
  }
  const auto isa = cpu::chooseIsa(std::getenv("MASHBOX_ISA"));
  if (!isa) return std::fprintf(stderr, "%s\n", isa.error().message.c_str()), 1;
  const auto model = model::Model::load({path, 0, *isa, {}});
  if (!model) return std::fprintf(stderr, "%s\n", model.error().message.c_str()), 1;
  const auto context = model::Context::create(*model, {1, 8192, model::KvType::F16, BatchTokens});
  if (!context) return std::fprintf(stderr, "%s\n", context.error().message.c_str()), 1;
  Bench bench(**context);
  const double prefill = bench.prefill(PromptTokens), decode = bench.decode();
  std::printf("{\"family\": \"%s\", \"isa\": \"%s\", \"threads\": %u, \"bytes\": %.0f, \"bytesPerToken\": %.0f, \"prefill\": %.3f, \"decode\": %.3f, \"lengths\": [",
              family.c_str(), cpu::isaName(*isa), cpu::availableCores(), double(std::filesystem::file_size(path)), bytesPerToken(path, (*model)->config()),
              PromptTokens / prefill, 1 / decode);
  for (int i = 3; i < argc; ++i) {
    const auto length = static_cast<uint32_t>(std::stoul(argv[i]));
    std::printf("%s{\"tokens\": %u, \"secondsPerToken\": %.9f}", i > 3 ? ", " : "", length, bench.prefill(length) / length);
  }
  std::printf("]}\n");
}
