#include "kv/block_pool.hpp"
#include "json.hpp"
#include "model/memory.hpp"
#include "model_session.hpp"
#include "test.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using kv::BlockPool;
using kv::Sequence;
using kv::WindowPool;
using model::KvType;
using model::Logits;
using model::Segment;
using test::check;
using test::Test;

constexpr uint32_t Window = 48;

BlockPool pool(uint32_t blocks = 64, uint32_t windowBlocks = 64) { return BlockPool(blocks, WindowPool(windowBlocks, Window)); }

void run(Sequence& sequence, uint32_t tokens) {
  check(static_cast<bool>(sequence.reserve(tokens)));
  sequence.advance(tokens);
}

const Test release{"window: blocks wholly behind the window are given back, the others' stay", [] {
  BlockPool blocks = pool();
  Sequence sequence(blocks);
  for (uint32_t length = 0; length < 1000; ++length) {
    check(static_cast<bool>(sequence.reserve(1)));
    const uint32_t seen = length < Window ? 0 : length - Window + 1;
    check(sequence.window()->first() == seen / kv::BlockTokens, "the first block that position " + std::to_string(length) + " sees");
    check((sequence.window()->first() + sequence.window()->blocks().size()) * kv::BlockTokens > length);
    sequence.advance(1);
  }
  check(sequence.blocks().size() == 32 && blocks.freeBlocks() == 32);
  check(sequence.window()->blocks().size() <= 3 && blocks.windows()->freeBlocks() == 64 - sequence.window()->blocks().size());
  sequence = Sequence(blocks);
  check(blocks.freeBlocks() == 64 && blocks.windows()->freeBlocks() == 64);
}};

const Test enough{"window: the blocks of one sequence suffice for every step that its context allows", [] {
  for (const uint32_t batch : {1u, 31u, 64u, 200u}) {
    const uint32_t context = 640, most = WindowPool::blocksPerSequence(Window, batch, context);
    check(most <= kv::blocksOf(Window + batch) + 1 && WindowPool::blocksPerSequence(Window, batch, 70) == 3);
    std::mt19937 random(batch);
    for (int round = 0; round < 50; ++round) {
      BlockPool blocks(20, WindowPool(most, Window));
      Sequence sequence(blocks);
      while (sequence.length() < context) {
        const uint32_t rows = std::min<uint32_t>(context - sequence.length(), 1 + random() % batch);
        check(sequence.room() >= rows);
        run(sequence, rows);
      }
    }
  }
}};

const Test exhausted{"window: without free window blocks a reserve takes nothing, and room says what it could take", [] {
  BlockPool blocks = pool(64, 4);
  Sequence first(blocks), second(blocks);
  run(first, 3 * kv::BlockTokens);
  check(second.room() == kv::BlockTokens);
  const auto refused = second.reserve(kv::BlockTokens + 1);
  check(!refused && refused.error().kind == ErrorKind::OutOfMemory && refused.error().message.find("window") != std::string::npos);
  check(second.blocks().empty() && blocks.freeBlocks() == 61 && blocks.windows()->freeBlocks() == 1);
  // The next token of `first` sees positions from 49 on: block 0 can go.
  check(first.room() == 2 * kv::BlockTokens && static_cast<bool>(first.reserve(2 * kv::BlockTokens)) && first.window()->first() == 1);
}};

const Test forkShares{"window: a fork has the window before its length, keeps it alive, and is empty where it is gone", [] {
  BlockPool blocks = pool();
  auto source = std::make_unique<Sequence>(blocks);
  run(*source, 320);
  Sequence fork = source->fork(310);
  check(fork.length() == 288 && fork.blocks().size() == 9 && fork.window()->first() == 0 && fork.window()->blocks().size() == 9);
  for (int i = 0; i < 64; ++i) run(*source, 1);
  check(source->window()->first() == 10 && fork.window()->first() == 0);
  check(source->fork(352).length() == 0, "the window before 352 began in block 9");
  check(source->fork(1000).length() == 384);
  source.reset();
  check(blocks.windows()->freeBlocks() == 55);
  check(!fork.endsShared() && static_cast<bool>(fork.reserve(1)) && fork.window()->first() == 7 && blocks.windows()->freeBlocks() == 64 - 3);
}};

const Test truncates{"window: truncate goes back to any length since the last step began, and says so where it cannot", [] {
  BlockPool blocks = pool();
  Sequence sequence(blocks);
  run(sequence, 200);
  run(sequence, 20);
  check(sequence.truncate(201) == 201 && sequence.length() == 201 && sequence.truncate(200) == 200);
  run(sequence, 1);
  check(sequence.window()->first() == 4 && sequence.truncate(176) == 176, "175 still sees 128");
  check(sequence.truncate(174) == 0 && sequence.blocks().empty() && sequence.window()->blocks().empty() && blocks.windows()->freeBlocks() == 64);
  run(sequence, 40);
  check(sequence.length() == 40 && sequence.window()->first() == 0);
}};

const Test plan{"memory: window layers cost their window and one step per slot, not the context", [] {
  model::Config config;
  config.layers.resize(2);
  for (model::LayerConfig& layer : config.layers) layer.attention.emplace();
  config.layers[1].attention->window = 512;
  config.width = 64;
  config.vocabulary = 1000;
  config.contextLength = 100000;
  const model::BlockBytes bytes{1000, 7000};
  const uint64_t available = 100'000'000;
  const auto planned = [&](uint32_t slots, uint32_t context) { return model::planMemory(config, {.slots = slots, .contextLength = context, .batchTokens = 256}, 0, bytes, available); };
  check(planned(2, 320).kvCache == 2 * 10 * 8000);
  check(planned(2, 100000).kvCache == 2 * (3125 * 1000 + 25 * 7000));
  for (const uint32_t slots : {1u, 3u, 20u}) {
    const auto free = planned(slots, 0);
    check(model::fits(planned(slots, free.largestContext)) && (free.largestContext == 100000 || !model::fits(planned(slots, free.largestContext + 1))));
    const auto fixed = planned(slots, 5000);
    check(model::fits(planned(fixed.largestSlots, 5000)) && !model::fits(planned(fixed.largestSlots + 1, 5000)));
  }
}};

/// gemma3 has a window of 32 on five of six layers.
std::shared_ptr<const model::Model> windowed(unsigned threads = 2) { return test::loadModel(test::golden("gemma3/model-q8_0.gguf"), cpu::detectIsa(), threads); }

std::vector<int32_t> someTokens(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> out(count);
  for (int32_t& token : out) token = static_cast<int32_t>(8 + random() % 480);
  return out;
}

const Test ring{"window: a long sequence in a small ring equals one whose blocks were never given back", [] {
  const auto model = windowed();
  const auto tokens = someTokens(450, 1);
  const auto small = test::expect(model::Context::create(model, {.slots = 1, .contextLength = 512, .kvType = KvType::F16, .batchTokens = 32}));
  const auto large = test::expect(model::Context::create(model, {.slots = 1, .contextLength = 512, .kvType = KvType::F16, .batchTokens = 512}));
  check(small->pool().windows()->totalBlocks() == 3 && large->pool().windows()->totalBlocks() == 16 && small->pool().totalBlocks() == 16);
  const auto whole = test::allLogits(*large, tokens, 512);
  check(test::sameBits(test::allLogits(*small, tokens, 32), whole) && test::sameBits(test::allLogits(*small, tokens, 1), whole));
  check(small->pool().windows()->freeBlocks() == 3);
}};

const Test prefix{"window: a forked prefix and the rest equal a cold run, while its source goes on", [] {
  const auto model = windowed();
  const auto context = test::expect(model::Context::create(model, {.slots = 4, .contextLength = 512, .kvType = KvType::F16, .batchTokens = 64}));
  const size_t width = model->config().vocabulary;
  const auto tokens = someTokens(300, 2), other = someTokens(100, 3);
  const auto cold = test::allLogits(*context, tokens, 64);
  Sequence source(context->pool());
  const auto feed = [&](Sequence& sequence, std::span<const int32_t> what) {
    std::vector<float> all;
    for (size_t at = 0; at < what.size(); at += 50) {
      const Segment segment{&sequence, what.subspan(at, std::min<size_t>(50, what.size() - at)), Logits::All};
      const auto rows = test::expect(context->forward({&segment, 1}));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  };
  feed(source, std::span(tokens).first(200));
  Sequence fork = source.fork(200);
  check(fork.length() == 192);
  feed(source, other);
  const auto rest = feed(fork, std::span(tokens).subspan(192));
  check(test::sameBits(rest, std::span(cold).subspan(192 * width)));
  // Back to where the latest step began, and on with other tokens.
  check(fork.truncate(291) == 291);
  const auto again = feed(fork, std::span(tokens).subspan(291));
  check(test::sameBits(again, std::span(cold).subspan(291 * width)));
}};

const Test threads{"window: threads, chunks and neighbours change no bit", test::threaded, [] {
  const auto tokens = someTokens(220, 4), neighbour = someTokens(90, 5);
  std::vector<float> want;
  for (const unsigned count : {1u, 3u}) {
    const auto context = test::createContext(windowed(count), KvType::F16, 2);
    const size_t width = context->model().config().vocabulary;
    const auto alone = test::allLogits(*context, tokens, 77);
    if (want.empty()) want = alone;
    check(test::sameBits(alone, want));
    Sequence a(context->pool()), b(context->pool());
    std::vector<float> beside;
    for (size_t at = 0; at < tokens.size(); at += 10) {
      const Segment segments[] = {{&b, std::span(neighbour).subspan(at % 80, 3), Logits::None}, {&a, std::span(tokens).subspan(at, 10), Logits::All}};
      const auto rows = test::expect(context->forward(segments));
      check(rows.size() == 10 * width);
      beside.insert(beside.end(), rows.begin(), rows.end());
    }
    check(test::sameBits(beside, want));
  }
}};

} // namespace
} // namespace mashbox
