#include "engine.hpp"
#include "model_session.hpp"
#include "sched/context_decoder.hpp"

#include <atomic>
#include <map>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using test::check;
using test::Engine;
using test::Test;

// Families whose windows are 32 tokens: every request below is several windows long, so that its ring wraps in prefill and in decode.
constexpr uint32_t Context = 320, Slots = 4, Requests = 6;

/// Counts the rows that were run. Some of the context's blocks may be taken from the start.
class CountedDecoder final : public sched::ContextDecoder {
public:
  CountedDecoder(std::unique_ptr<model::Context> context, uint32_t batchTokens, std::atomic<uint64_t>& rows)
      : ContextDecoder(std::move(context), batchTokens), rows_(rows) {}

  Result<std::span<const float>> forward(std::span<const model::Segment> segments) override {
    for (const model::Segment& segment : segments) rows_ += segment.tokens.size();
    return ContextDecoder::forward(segments);
  }
  /// Leaves so many blocks of the layers that see everything, and of those with a window.
  void leave(uint32_t blocks, uint32_t windowBlocks) {
    while (pool().freeBlocks() > blocks) test::expect(pool().acquire());
    while (pool().windows()->freeBlocks() > windowBlocks) test::expect(pool().windows()->acquire());
  }

private:
  std::atomic<uint64_t>& rows_;
};

std::unique_ptr<CountedDecoder> decoder(std::shared_ptr<const model::Model> loaded, uint32_t slots, uint32_t batchTokens, std::atomic<uint64_t>& rows) {
  const model::ContextOptions options{.slots = slots, .contextLength = Context, .kvType = model::KvType::F16, .batchTokens = batchTokens};
  return std::make_unique<CountedDecoder>(test::expect(model::Context::create(std::move(loaded), options)), batchTokens, rows);
}

sched::Request request(uint32_t id, uint32_t knownTokens) {
  std::vector<int32_t> tokens(20 + id * 31);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>((id * 131 + i * 17 + i * i) % knownTokens);
  return {
    .id = id,
    .tokens = tokens,
    .maxTokens = 70,
    .sampling = {.temperature = id % 3 == 0 ? 0 : 0.9f, .topP = 0.95f, .repetitionPenalty = 1.05f, .seed = 500 + id},
    .stopTokens = {},
  };
}

/// What each request gets when nothing runs beside it.
struct Alone {
  std::shared_ptr<const model::Model> loaded;
  uint32_t known;
  std::map<uint32_t, std::vector<int32_t>> tokens;
  std::atomic<uint64_t> rows = 0; ///< of all requests

  explicit Alone(const std::string& path) : loaded(test::loadModel(test::golden(path), cpu::detectIsa())), known(loaded->config().tokens) {
    for (uint32_t id = 1; id <= Requests; ++id) {
      Engine engine(decoder(loaded, 1, 64, rows));
      engine.submit(request(id, known));
      tokens[id] = engine.wait(id).tokens;
      check(tokens[id].size() == 70);
    }
  }
};

void checkTogether(const Alone& alone, Engine& engine, const std::string& what) {
  for (const auto& [id, tokens] : alone.tokens) {
    const auto outcome = engine.wait(id);
    check(!outcome.failed, what + ": " + (outcome.failed ? outcome.failed->message : ""));
    check(outcome.tokens == tokens, "request " + std::to_string(id) + " " + what);
  }
}

void mixed(const std::string& path) {
  const Alone alone(path);
  for (const uint32_t batchTokens : {6u, 23u, 64u}) {
    std::atomic<uint64_t> rows = 0;
    Engine engine(decoder(alone.loaded, Slots, batchTokens, rows));
    for (uint32_t id = 1; id <= Requests; ++id) engine.submit(request(id, alone.known));
    checkTogether(alone, engine, "in batches of " + std::to_string(batchTokens));
    const auto stats = engine.scheduler().stats();
    check(stats.blocks.used == 0 && stats.blocks.windowUsed == 0 && stats.blocks.windowTotal > 0);
    check(rows == alone.rows, "every row ran once");
  }
}

/// With too few blocks, requests give theirs back and are run again.
void scarce(const std::string& path, uint32_t blocks, uint32_t windowBlocks) {
  const Alone alone(path);
  std::atomic<uint64_t> rows = 0;
  auto few = decoder(alone.loaded, Slots, 23, rows);
  few->leave(blocks, windowBlocks);
  Engine engine(std::move(few));
  for (uint32_t id = 1; id <= Requests; ++id) engine.submit(request(id, alone.known));
  checkTogether(alone, engine, "with " + std::to_string(blocks) + " and " + std::to_string(windowBlocks) + " blocks");
  check(rows > alone.rows, "some were run again");
  const auto stats = engine.scheduler().stats();
  check(stats.blocks.free() == std::min(blocks, stats.blocks.total) && stats.blocks.windowFree() == std::min(windowBlocks, stats.blocks.windowTotal));
}

void cancelling(const std::string& path) {
  const Alone alone(path);
  std::atomic<uint64_t> rows = 0;
  Engine engine(decoder(alone.loaded, Slots, 23, rows));
  for (uint32_t id = 11; id <= 13; ++id) {
    auto endless = request(id - 10, alone.known);
    endless.id = id;
    endless.maxTokens = 200;
    engine.submit(endless);
  }
  engine.waitForTokens(11, 40);
  for (uint32_t id = 1; id <= Requests; ++id) engine.submit(request(id, alone.known));
  engine.waitForTokens(1, 3);
  for (uint32_t id = 11; id <= 13; ++id) engine.scheduler().cancel(id);
  checkTogether(alone, engine, "beside and after cancelled ones");
  for (uint32_t id = 11; id <= 13; ++id) check(engine.wait(id).done.has_value());
}

/// Enough for any one request, too few for four: 9 and 3 blocks are what the longest needs.
constexpr uint32_t Plenty = 1000, FewBlocks = 12, FewWindowBlocks = 4;

const std::vector<Test> tests = [] {
  std::vector<Test> all;
  for (const std::string path : {"gemma3/model-q8_0.gguf", "gpt-oss/model-mxfp4_moe.gguf", "laguna/model-q4_0.gguf"}) {
    const std::string family = path.substr(0, path.find('/'));
    all.emplace_back("window scheduling: prefill and decode side by side in wrapping rings equal each alone: " + family, [path] { mixed(path); });
    all.emplace_back("window scheduling: requests that give their blocks back equal each alone: " + family, [path] { scarce(path, FewBlocks, Plenty); });
    all.emplace_back("window scheduling: requests that give their window's blocks back equal each alone: " + family, [path] { scarce(path, Plenty, FewWindowBlocks); });
    all.emplace_back("window scheduling: cancelled requests leave nothing in the rings: " + family, [path] { cancelling(path); });
  }
  return all;
}();

} // namespace
} // namespace mashbox
