#include "dequantized_model.hpp"
#include "json.hpp"
#include "model_session.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
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

/// A family's folder of golden files, some of which may be elsewhere than others.
struct Folder {
  std::string name;
  Json golden;
  size_t width;

  explicit Folder(const std::string& folder)
      : name(folder), golden(Json::load(test::golden(folder + "/golden.json"))), width(static_cast<size_t>(golden["n_vocab"].integer())) {}

  std::filesystem::path file(const std::string& file) const { return test::golden(name + "/" + file); }
  const Json& variant(const std::string& file) const {
    const auto& variants = golden["variants"].list();
    const auto found = std::find_if(variants.begin(), variants.end(), [&](const Json& entry) { return entry["file"].string() == file; });
    check(found != variants.end(), name + "/golden.json has " + file);
    return *found;
  }
};

/// How far a variant's logits may be from ours in floats. Those of quantized Gemmas come from the stock llama.cpp, which looks GELU up in
/// a table of binary16 (the rows of the F32 models do not); the golden file says what that costs each of its own cases, and the weights of
/// a variant are a little different.
double exactTolerance(const Folder& folder) {
  double tolerance = FloatTolerance;
  const Json* cases = folder.golden.find("cases");
  if (!cases) return tolerance;
  for (const Json& entry : cases->list())
    if (const Json* stated = entry.find("stock_llama_cpp_rel_err")) tolerance = std::max(tolerance, 1.25 * stated->number());
  return tolerance;
}

/// The rows of `all` that a case has stored.
std::span<const float> storedRows(std::span<const float> all, const Json& entry, size_t width) {
  return all.subspan(static_cast<size_t>(entry["first_row"].integer()) * width, static_cast<size_t>(entry["rows"].integer()) * width);
}

void within(double error, double tolerance, const std::string& what) {
  check(error <= tolerance, what + ": error " + std::to_string(error) + " above " + std::to_string(tolerance));
}

void checkCase(const Folder& folder, const Json& entry, model::Context& exact, model::Context& halves, const std::string& name) {
  const auto tokens = entry["tokens"].ints();
  const auto want = test::readFloats(folder.file(entry["logits"].string()));
  const auto whole = test::allLogits(exact, tokens, 256);
  within(test::distance(storedRows(whole, entry, folder.width), want, folder.width).worst, FloatTolerance, name);
  for (const size_t chunk : {1, 7, 64}) check(test::sameBits(test::allLogits(exact, tokens, chunk), whole), name + " in chunks of " + std::to_string(chunk));

  const auto rounded = test::allLogits(halves, tokens, 256);
  const double tolerance = std::max(5e-3, 3 * entry["kv_f16_rel_err"].number());
  within(test::distance(storedRows(rounded, entry, folder.width), want, folder.width).worst, tolerance, name + " with an F16 cache");

  const auto continuation = entry["greedy"].ints();
  check(test::greedy(exact, tokens, continuation.size()) == continuation, name + ": greedy continuation");
}

void checkModel(const std::string& name) {
  const Folder folder(name);
  const auto path = folder.file(folder.golden["model"]["file"].string());
  for (const cpu::Isa isa : testedTiers()) {
    const auto model = test::loadModel(path, isa);
    const auto exact = test::createContext(model, KvType::F32), halves = test::createContext(model, KvType::F16);
    for (const Json& entry : folder.golden["cases"].list())
      checkCase(folder, entry, *exact, *halves, name + "/" + entry["logits"].string() + " under " + cpu::isaName(isa));
  }
}

/// A quantized file against the logits of its dequantized weights: exactly in floats, within the file's tolerance in 8 bits.
void checkVariant(const std::string& name, const std::string& file) {
  const Folder folder(name);
  const double floats = exactTolerance(folder);
  const Json& variant = folder.variant(file);
  const auto path = folder.file(file);
  const auto tokens = variant["tokens"].ints();
  const auto want = test::readFloats(folder.file(variant["logits"].string()));
  const auto compare = [&](const std::filesystem::path& model, cpu::Isa isa, double tolerance, double toleranceRms) {
    const std::string what = name + "/" + file + " under " + cpu::isaName(isa);
    const auto context = test::createContext(test::loadModel(model, isa), KvType::F32);
    const auto all = test::allLogits(*context, tokens, 256);
    const auto error = test::distance(storedRows(all, variant, folder.width), want, folder.width);
    within(error.worst, tolerance, what);
    within(error.rms, toleranceRms, what + " (rms)");
    for (const size_t chunk : {1, 7}) check(test::sameBits(test::allLogits(*context, tokens, chunk), all), what + " in chunks of " + std::to_string(chunk));
  };
  const auto opened = test::expect(gguf::File::open(path.string()));
  const auto tensors = opened.tensors();
  const bool int8 = std::any_of(tensors.begin(), tensors.end(), [](const gguf::Tensor& tensor) { return cpu::usesInt8(tensor.format->type); });
  const auto exact = test::dequantized(path);
  for (const cpu::Isa isa : testedTiers()) {
    compare(exact.path(), isa, floats, floats);
    compare(path, isa, int8 ? variant["tolerance"].number() : floats, int8 ? variant["tolerance_rms"].number() : floats);
  }
}

/// One test per model file that a golden file of the fixtures names, so that a file that is nowhere is one counted skip.
const std::vector<Test> models = [] {
  std::vector<Test> tests;
  std::map<std::string, Json> folders;
  for (const auto& entry : std::filesystem::directory_iterator(test::projectRoot() / "test/fixtures/golden"))
    if (const auto file = entry.path() / "golden.json"; std::filesystem::exists(file)) folders.emplace(entry.path().filename().string(), Json::load(file));
  for (const auto& [name, golden] : folders) {
    if (golden.find("cases") == nullptr) continue;
    if (golden.find("model") != nullptr) tests.emplace_back("golden: " + name, [name = name] { checkModel(name); });
    for (const Json& variant : golden["variants"].list()) {
      const std::string file = variant["file"].string();
      tests.emplace_back("golden: " + name + "/" + file, [name = name, file] { checkVariant(name, file); });
    }
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
