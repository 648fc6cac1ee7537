#include "engine.hpp"
#include "model_session.hpp"
#include "sched/context_decoder.hpp"

#include <map>
#include <string>

namespace {

using namespace mashbox;
using mashbox::test::check;
using mashbox::test::Engine;
using mashbox::test::Test;

constexpr uint32_t Requests = 8;

std::unique_ptr<sched::Decoder> decoder(std::shared_ptr<const model::Model> loaded, uint32_t slots, uint32_t batchTokens) {
  const model::ContextOptions options{.slots = slots, .contextLength = 256, .kvType = model::KvType::F16, .batchTokens = batchTokens};
  return std::make_unique<sched::ContextDecoder>(test::expect(model::Context::create(std::move(loaded), options)), batchTokens);
}

sched::Request request(uint32_t id, uint32_t knownTokens) {
  std::vector<int32_t> tokens(3 + id * 11);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((id * 131 + i * 17 + i * i) % knownTokens);
  return {
    .id = id,
    .tokens = tokens,
    .maxTokens = 24,
    .sampling = {.temperature = id % 4 == 0 ? 0 : 0.9f, .topP = 0.95f, .repetitionPenalty = 1.05f, .seed = 900 + id},
    .stopTokens = {},
  };
}

void invariant(const std::string& path) {
  const auto loaded = test::loadModel(test::golden(path), cpu::detectIsa());
  const uint32_t known = loaded->config().tokens;
  std::map<uint32_t, std::vector<int32_t>> alone;
  for (uint32_t id = 1; id <= Requests; ++id) {
    Engine engine(decoder(loaded, 1, 256));
    engine.submit(request(id, known));
    alone[id] = engine.wait(id).tokens;
    check(alone[id].size() == 24);
  }
  check(alone[1] != alone[2]);
  for (const uint32_t batchTokens : {9u, 40u, 256u}) {
    Engine engine(decoder(loaded, Requests, batchTokens));
    for (uint32_t id = 1; id <= Requests; ++id) engine.submit(request(id, known));
    for (uint32_t id = 1; id <= Requests; ++id)
      check(engine.wait(id).tokens == alone[id], "request " + std::to_string(id) + " in batches of " + std::to_string(batchTokens));
    const auto stats = engine.scheduler().stats();
    check(stats.blocks.used == 0 && stats.steps < Requests * 24);
  }
}

const Test llama{"batching: eight concurrent seeded requests of a llama equal each alone", [] { invariant("llama/model-f32.gguf"); }};
const Test qwen2{"batching: eight concurrent seeded requests of a qwen2 equal each alone", [] { invariant("qwen2/model-f32.gguf"); }};
const Test qwen3{"batching: eight concurrent seeded requests of a quantized qwen3 equal each alone", test::threaded, [] { invariant("qwen3/model-q8_0.gguf"); }};

const Test qwen2moe{"batching: eight concurrent seeded requests of a quantized qwen2moe equal each alone", [] { invariant("qwen2moe/model-q8_0.gguf"); }};
const Test gptOss{"batching: eight concurrent seeded requests of a gpt-oss with MXFP4 experts equal each alone", test::threaded, [] { invariant("gpt-oss/model-mxfp4_moe.gguf"); }};
const Test qwen35{"batching: eight concurrent seeded requests of a qwen35 equal each alone", test::threaded, [] { invariant("qwen35/model-q8_0.gguf"); }};
const Test qwen3next{"batching: eight concurrent seeded requests of a qwen3next equal each alone", [] { invariant("qwen3next/model-q4_0.gguf"); }};

const Test cancelled{"batching: cancelled requests of a qwen35 leave nothing in the states that others get after them", test::threaded, [] {
  const auto loaded = test::loadModel(test::golden("qwen35/model-q8_0.gguf"), cpu::detectIsa());
  const uint32_t known = loaded->config().tokens;
  std::map<uint32_t, std::vector<int32_t>> alone;
  for (const uint32_t id : {4u, 5u, 6u, 7u}) {
    Engine engine(decoder(loaded, 1, 256));
    engine.submit(request(id, known));
    alone[id] = engine.wait(id).tokens;
  }
  Engine engine(decoder(loaded, 2, 40));
  for (const uint32_t id : {1u, 2u, 3u}) {
    auto endless = request(id, known);
    endless.maxTokens = 200;
    engine.submit(endless);
  }
  engine.waitForTokens(1, 3);
  for (const uint32_t id : {4u, 5u, 6u, 7u}) engine.submit(request(id, known));
  for (const uint32_t id : {1u, 2u, 3u}) engine.scheduler().cancel(id);
  for (const uint32_t id : {1u, 2u, 3u}) check(engine.wait(id).done.has_value());
  for (const auto& [id, tokens] : alone) check(engine.wait(id).tokens == tokens, "request " + std::to_string(id));
}};

const Test unknownTokens{"batching: a token without a text is rejected before it can fail its batch", [] {
  const auto loaded = test::loadModel(test::golden("llama/model-f32.gguf"), cpu::detectIsa());
  Engine engine(decoder(loaded, 2, 64));
  auto bad = request(1, loaded->config().tokens);
  bad.tokens[2] = static_cast<int32_t>(loaded->config().tokens);
  const auto result = engine.scheduler().submit(bad);
  check(!result && result.error().subject == "tokens");
}};

} // namespace
