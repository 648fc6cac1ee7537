#include "json.hpp"
#include "model_session.hpp"

#include <cmath>
#include <string>

namespace mashbox {
namespace {

using test::check;
using test::Json;
using test::Test;

/// A file of the optional folder of real models beside the project.
std::filesystem::path sharedModel(const std::string& name) {
  const auto path = test::projectRoot().parent_path() / "shared/models" / name;
  if (!std::filesystem::exists(path)) test::skip("no shared/models/" + name);
  if (test::Sanitized) test::skip("too slow in a sanitized build");
  return path;
}

constexpr const char* Model = "SmolLM2-135M-Instruct.Q4_1.gguf";

const Test answers{"smollm2: greedy answers while the reference is sure of them", [] {
  const auto path = sharedModel(Model);
  const auto golden = Json::load(sharedModel("SmolLM2-135M-Instruct.Q4_1.golden.json"));
  const auto context = test::createContext(test::loadModel(path, cpu::detectIsa()), model::KvType::F16);
  constexpr double SureMargin = 0.5; // 8-bit activations may flip what is closer
  size_t compared = 0;
  for (const Json& entry : golden["cases"].list()) {
    const auto want = entry["greedy_ids"].ints();
    size_t sure = 0;
    while (sure < want.size() && entry["margins"][sure].number() > SureMargin) ++sure;
    auto got = test::greedy(*context, entry["prompt_ids"].ints(), sure);
    check(std::equal(got.begin(), got.end(), want.begin()), entry["prompt"].string());
    compared += sure;
  }
  check(compared > 50, "enough sure tokens, not " + std::to_string(compared));
}};

const Test passage{"smollm2: the likelihood of a passage is the reference's within 1 %", [] {
  const auto path = sharedModel(Model);
  const auto golden = Json::load(sharedModel("SmolLM2-135M-Instruct.Q4_1.golden.json"));
  const auto tokens = Json::load(test::projectRoot() / "test/fixtures/smollm2-passage.json")["tokens"].ints();
  check(static_cast<int64_t>(tokens.size()) == golden["passage"]["tokens"].integer(), "the passage's tokens");
  const auto context = test::createContext(test::loadModel(path, cpu::detectIsa()), model::KvType::F16);
  const size_t width = context->model().config().vocabulary;
  const auto logits = test::allLogits(*context, tokens, 128);
  double sum = 0;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const auto row = std::span(logits).subspan(i * width, width);
    const double largest = row[static_cast<size_t>(test::argmax(row))];
    double total = 0;
    for (const float logit : row) total += std::exp(logit - largest);
    sum += largest + std::log(total) - row[static_cast<size_t>(tokens[i + 1])];
  }
  const double mean = sum / static_cast<double>(tokens.size() - 1), want = golden["passage"]["mean_nll"].number();
  check(std::abs(mean / want - 1) < 0.01, "mean negative log likelihood " + std::to_string(mean) + " against " + std::to_string(want));
}};

} // namespace
} // namespace mashbox
