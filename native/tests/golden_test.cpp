#include "json.hpp"
#include "model_session.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using model::KvType;
using test::check;
using test::Json;
using test::Test;

constexpr double FloatTolerance = 2e-5;

/// Sanitized builds are slow: the highest tier alone stands for the others there.
std::vector<cpu::Isa> testedTiers() {
  auto tiers = test::availableTiers();
  if (!test::Sanitized) return tiers;
  static const int noted = std::printf("note    sanitized build: golden models under %s only\n", cpu::isaName(tiers.back()));
  static_cast<void>(noted);
  return {tiers.back()};
}

struct Folder {
  std::filesystem::path path;
  Json golden;
  size_t width;

  explicit Folder(const std::string& name)
      : path(test::golden(name + "/golden.json").parent_path()), golden(Json::load(path / "golden.json")),
        width(static_cast<size_t>(golden["n_vocab"].integer())) {}
};

/// The rows of `all` that a case has stored.
std::span<const float> storedRows(std::span<const float> all, const Json& entry, size_t width) {
  return all.subspan(static_cast<size_t>(entry["first_row"].integer()) * width, static_cast<size_t>(entry["rows"].integer()) * width);
}

void within(double error, double tolerance, const std::string& what) {
  check(error <= tolerance, what + ": error " + std::to_string(error) + " above " + std::to_string(tolerance));
}

void checkCase(const Folder& folder, const Json& entry, model::Context& exact, model::Context& halves, const std::string& name) {
  const auto tokens = entry["tokens"].ints();
  const auto want = test::readFloats(folder.path / entry["logits"].string());
  const auto whole = test::allLogits(exact, tokens, 256);
  within(test::distance(storedRows(whole, entry, folder.width), want, folder.width).worst, FloatTolerance, name);
  for (const size_t chunk : {1, 7, 64}) check(test::sameBits(test::allLogits(exact, tokens, chunk), whole), name + " in chunks of " + std::to_string(chunk));

  const auto rounded = test::allLogits(halves, tokens, 256);
  const double tolerance = std::max(5e-3, 3 * entry["kv_f16_rel_err"].number());
  within(test::distance(storedRows(rounded, entry, folder.width), want, folder.width).worst, tolerance, name + " with an F16 cache");

  const auto continuation = entry["greedy"].ints();
  check(test::greedy(exact, tokens, continuation.size()) == continuation, name + ": greedy continuation");
}

struct VariantFiles {
  std::filesystem::path model, logits;
};

bool usesInt8(const std::filesystem::path& path) {
  const auto file = test::expect(gguf::File::open(path.string()));
  const auto tensors = file.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const gguf::Tensor& tensor) { return cpu::usesInt8(tensor.format->type); });
}

/// 8-bit activations have the tolerance of the file, float ones that of float.
void checkVariant(const VariantFiles& files, const Json& variant, size_t width, cpu::Isa isa) {
  const std::string name = variant["file"].string() + " under " + cpu::isaName(isa);
  const bool int8 = usesInt8(files.model);
  const auto context = test::createContext(test::loadModel(files.model, isa), KvType::F32);
  const auto tokens = variant["tokens"].ints();
  const auto all = test::allLogits(*context, tokens, 256);
  const auto error = test::distance(storedRows(all, variant, width), test::readFloats(files.logits), width);
  within(error.worst, int8 ? variant["tolerance"].number() : FloatTolerance, name);
  within(error.rms, int8 ? variant["tolerance_rms"].number() : FloatTolerance, name + " (rms)");
  check(test::sameBits(test::allLogits(*context, tokens, 7), all), name + " in chunks of 7");
}

void checkFamily(const std::string& name) {
  const Folder folder(name);
  for (const cpu::Isa isa : testedTiers()) {
    const auto model = test::loadModel(folder.path / folder.golden["model"]["file"].string(), isa);
    const auto exact = test::createContext(model, KvType::F32), halves = test::createContext(model, KvType::F16);
    for (const Json& entry : folder.golden["cases"].list())
      checkCase(folder, entry, *exact, *halves, name + "/" + entry["logits"].string() + " under " + cpu::isaName(isa));
    for (const Json& variant : folder.golden["variants"].list())
      checkVariant({folder.path / variant["file"].string(), folder.path / variant["logits"].string()}, variant, folder.width, isa);
  }
}

const Test llama{"golden: llama (rope factors, grouped heads, own output)", [] { checkFamily("llama"); }};
const Test llamaPlain{"golden: llama-plain (width 96, 3 heads on 1, tied output)", [] { checkFamily("llama-plain"); }};
const Test qwen2{"golden: qwen2 (biases)", [] { checkFamily("qwen2"); }};
const Test qwen3{"golden: qwen3 (head norms, heads wider than the model)", [] { checkFamily("qwen3"); }};

/// Quantized files alone, where the folder has no model in F32.
void checkVariants(const std::string& name) {
  const Folder folder(name);
  for (const cpu::Isa isa : testedTiers())
    for (const Json& variant : folder.golden["variants"].list())
      checkVariant({folder.path / variant["file"].string(), folder.path / variant["logits"].string()}, variant, folder.width, isa);
}

const Test qwen3moe{"golden: qwen3moe (experts, normalised)", [] { checkFamily("qwen3moe"); }};
const Test qwen3moeK{"golden: qwen3moe-k (stacks in Q4_K and Q6_K)", [] { checkVariants("qwen3moe-k"); }};
const Test qwen2moe{"golden: qwen2moe (experts, not normalised, shared expert with a gate)", [] { checkFamily("qwen2moe"); }};

void checkQuant(const std::string& file) {
  const auto model = test::golden("quants/" + file);
  const Folder folder("quants");
  const auto& variants = folder.golden["variants"].list();
  const auto variant = std::find_if(variants.begin(), variants.end(), [&](const Json& entry) { return entry["file"].string() == file; });
  check(variant != variants.end(), "golden.json has " + file);
  const auto logits = test::golden("quants/" + (*variant)["logits"].string());
  for (const cpu::Isa isa : testedTiers()) checkVariant({model, logits}, *variant, folder.width, isa);
}

/// One test per file, so that a file that is not here is one counted skip.
const std::vector<Test> quants = [] {
  std::vector<Test> tests;
  for (const char* format : {"f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "q2_k", "q3_k", "iq4_nl", "iq4_xs", "mxfp4",
                             "nvfp4", "mix-q3_k_m", "mix-q4_k_s", "mix-q4_k_m", "mix-q5_k_m", "mix-iq4_xs"}) {
    const std::string file = "model-" + std::string(format) + ".gguf";
    tests.emplace_back("golden: quants/" + file, [file] { checkQuant(file); });
  }
  return tests;
}();

const Test split{"golden: split models equal the merged one bit for bit", [] {
  const auto folder = test::golden("split/golden.json").parent_path();
  const auto golden = Json::load(folder / "golden.json");
  const auto merged = test::golden("qwen3/model-q8_0.gguf");
  const std::vector<int32_t> tokens = {5, 6, 7, 300, 12, 9, 44, 2};
  const auto logitsOf = [&](const std::filesystem::path& path) {
    const auto context = test::createContext(test::loadModel(path, cpu::detectIsa()), KvType::F32);
    return test::allLogits(*context, tokens, 256);
  };
  const auto want = logitsOf(merged);
  for (const Json& entry : golden["models"].list())
    check(test::sameBits(logitsOf(folder / entry["open"].string()), want), entry["name"].string());
}};

const Test demo{"golden: the bundled model's exact greedy answers", [] {
  const auto golden = Json::load(test::projectRoot() / "test/fixtures/mashbox-demo.golden.json");
  const auto ends = golden["end_ids"].ints();
  const auto most = static_cast<size_t>(golden["max_new_tokens"].integer());
  for (const cpu::Isa isa : testedTiers()) {
    // The scalar tier needs seconds for what the others do at once; a few answers show that it agrees.
    const size_t count = isa == cpu::Isa::Scalar || test::Sanitized ? 4 : golden["exact"].size();
    const auto context = test::createContext(test::loadModel(test::projectRoot() / "models/mashbox-demo.gguf", isa), KvType::F16);
    for (size_t i = 0; i < count; ++i) {
      const Json& entry = golden["exact"][i];
      check(test::greedy(*context, entry["prompt_ids"].ints(), most, ends) == entry["output_ids"].ints(),
            entry["name"].string() + " under " + cpu::isaName(isa));
    }
  }
}};

} // namespace
} // namespace mashbox
