#include "model_session.hpp"

#include <string>
#include <vector>

namespace mashbox {
namespace {

using test::Test;

/// Logits of a prompt in two chunks, then of tokens one by one, on so many threads.
std::vector<float> logitsOn(unsigned threads, const std::string& path) {
  const auto model = test::loadModel(test::golden(path), cpu::detectIsa(), threads);
  const auto context = test::createContext(model, model::KvType::F16);
  std::vector<int32_t> tokens(96);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((i * 37 + i * i) % model->config().tokens);
  auto logits = test::allLogits(*context, tokens, 60);
  const auto single = test::allLogits(*context, std::span(tokens).first(6), 1);
  logits.insert(logits.end(), single.begin(), single.end());
  return logits;
}

/// One model file for every family and kind of layer.
const std::vector<Test> families = [] {
  std::vector<Test> tests;
  for (const std::string path :
       {"gemma2/model-q8_0", "gemma3/model-q8_0", "gemma4-31b/model-q8_0", "gemma4-a4b/model-q8_0", "gemma4-e/model-q8_0", "gpt-oss/model-mxfp4_moe",
        "laguna/model-q8_0", "laguna-m1/model-q8_0", "llama/model-f32", "llama-plain/model-mix-q4_k_m", "quants/model-bf16", "qwen2/model-q8_0",
        "qwen2moe/model-q4_0", "qwen3/model-q8_0", "qwen35/model-q8_0", "qwen35-mtp/model-q8_0", "qwen35moe/model-q4_0", "qwen3moe/model-q4_0",
        "qwen3next/model-q4_0", "smollm3/model-q8_0"})
    tests.emplace_back("threads: " + path + " gives the same bits on one, two and three", test::threaded, [path] {
      const auto alone = logitsOn(1, path + ".gguf");
      for (const unsigned threads : {2u, 3u}) test::check(test::sameBits(logitsOn(threads, path + ".gguf"), alone), std::to_string(threads) + " threads");
    });
  return tests;
}();

} // namespace
} // namespace mashbox
