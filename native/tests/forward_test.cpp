#include "model/memory.hpp"
#include "json.hpp"
#include "model_session.hpp"
#include "temporary_file.hpp"
#include "tiny_model.hpp"

#include <limits>

namespace mashbox {
namespace {

using model::Context;
using model::ContextOptions;
using model::KvType;
using model::Logits;
using model::Segment;
using test::check;
using test::TemporaryFile;
using test::Test;
using test::TinyModel;

std::vector<int32_t> someTokens(size_t count, int32_t seed, int32_t vocabulary) {
  std::vector<int32_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<int32_t>((i * 7919 + static_cast<size_t>(seed) * 104729 + i * i * 31) % static_cast<size_t>(vocabulary));
  return out;
}

std::shared_ptr<const model::Model> demo(unsigned threads = 2) {
  return test::loadModel(test::projectRoot() / "models/mashbox-demo.gguf", cpu::detectIsa(), threads);
}

/// The logits of three sequences that advance by different numbers of tokens in the same steps.
std::vector<std::vector<float>> together(Context& context, const std::vector<std::vector<int32_t>>& prompts, const std::vector<size_t>& chunks) {
  std::vector<kv::Sequence> sequences;
  for (size_t i = 0; i < prompts.size(); ++i) sequences.emplace_back(context.pool());
  std::vector<std::vector<float>> out(prompts.size());
  for (;;) {
    std::vector<Segment> segments;
    std::vector<size_t> whose;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const size_t at = sequences[i].length(), rows = std::min(chunks[i], prompts[i].size() - at);
      if (rows == 0) continue;
      segments.push_back({&sequences[i], std::span(prompts[i]).subspan(at, rows), Logits::All});
      whose.push_back(i);
    }
    if (segments.empty()) return out;
    auto rows = test::expect(context.forward(segments));
    const size_t width = context.model().config().vocabulary;
    for (size_t s = 0; s < segments.size(); ++s) {
      const auto mine = rows.first(segments[s].tokens.size() * width);
      out[whose[s]].insert(out[whose[s]].end(), mine.begin(), mine.end());
      rows = rows.subspan(mine.size());
    }
  }
}

const Test batches{"forward: a sequence gets the same bits alone and beside others", [] {
  for (const char* file : {"llama/model-f32.gguf", "qwen2/model-q4_0.gguf", "qwen3/model-q8_0.gguf"}) {
    const auto model = test::loadModel(test::golden(file), cpu::detectIsa());
    const auto context = test::createContext(model, KvType::F16, 3);
    const std::vector<std::vector<int32_t>> prompts = {someTokens(90, 1, 512), someTokens(33, 2, 512), someTokens(130, 3, 512)};
    const auto got = together(*context, prompts, {1, 7, 50});
    for (size_t i = 0; i < prompts.size(); ++i)
      check(test::sameBits(got[i], test::allLogits(*context, prompts[i], 256)), std::string(file) + " sequence " + std::to_string(i));
    check(context->pool().freeBlocks() == context->pool().totalBlocks(), "every block came back");
  }
}};

/// Enough tokens for more than one span of attention.
std::vector<int32_t> severalSpans() { return someTokens(test::Sanitized ? 600 : 1100, 4, 4000); }

const Test threads{"forward: threads and chunks change no bit, also past one span of attention", [] {
  const auto tokens = severalSpans();
  std::vector<float> want;
  for (const unsigned count : {1, 2, 3}) {
    const auto context = test::createContext(demo(count), KvType::F16);
    for (const size_t chunk : {256, 100}) {
      const auto got = test::allLogits(*context, tokens, chunk);
      if (want.empty()) want = got;
      check(test::sameBits(got, want), std::to_string(count) + " threads, chunks of " + std::to_string(chunk));
    }
  }
}};

const Test sharedSpans{"forward: single rows far into the context, whose spans threads share out, have the bits of one thread", test::threaded, [] {
  const auto tokens = severalSpans();
  const auto rowsOn = [&](unsigned threads) {
    const auto context = test::createContext(demo(threads), KvType::F16);
    kv::Sequence sequence(context->pool());
    std::vector<float> logits;
    const size_t tail = tokens.size() - 20;
    for (size_t at = 0; at < tokens.size();) {
      const size_t rows = at < tail ? std::min<size_t>(256, tail - at) : 1;
      const Segment segment{&sequence, std::span(tokens).subspan(at, rows), Logits::Last};
      const auto last = test::expect(context->forward({&segment, 1}));
      logits.insert(logits.end(), last.begin(), last.end());
      at += rows;
    }
    return logits;
  };
  check(test::sameBits(rowsOn(2), rowsOn(1)));
}};

const Test wantedRows{"forward: only wanted rows come back, and they are the same", [] {
  const auto context = test::createContext(demo(), KvType::F32, 2);
  const size_t width = context->model().config().vocabulary;
  const auto tokens = someTokens(40, 5, 4000);
  const auto all = test::allLogits(*context, tokens, 256);
  kv::Sequence a(context->pool()), b(context->pool()), c(context->pool());
  const Segment segments[] = {{&a, tokens, Logits::Last}, {&b, tokens, Logits::None}, {&c, std::span(tokens).first(2), Logits::All}};
  const auto rows = test::expect(context->forward(segments));
  check(rows.size() == 3 * width && a.length() == 40 && b.length() == 40 && c.length() == 2);
  check(test::sameBits(rows.first(width), std::span(all).last(width)));
  check(test::sameBits(rows.subspan(width), std::span(all).first(2 * width)));
  kv::Sequence d(context->pool());
  const Segment none{&d, tokens, Logits::None};
  check(test::expect(context->forward({&none, 1})).empty() && d.length() == 40);
}};

const Test prefix{"forward: a forked prefix and the rest equal a cold run", [] {
  const auto context = test::createContext(demo(), KvType::F16, 2);
  const size_t width = context->model().config().vocabulary;
  const auto tokens = someTokens(100, 6, 4000);
  const auto cold = test::allLogits(*context, tokens, 256);
  kv::Sequence first(context->pool());
  const Segment whole{&first, tokens, Logits::None};
  test::expect(context->forward({&whole, 1}));
  kv::Sequence fork = first.fork(90);
  check(fork.length() == 64);
  const Segment rest{&fork, std::span(tokens).subspan(64), Logits::All};
  check(test::sameBits(test::expect(context->forward({&rest, 1})), std::span(cold).subspan(64 * width)));

  fork.truncate(50);
  const Segment intoShared{&fork, std::span(tokens).first(1), Logits::Last};
  const auto refused = context->forward({&intoShared, 1});
  check(!refused && refused.error().kind == ErrorKind::Rejected && fork.length() == 50, "a shared block is not written");
}};

const Test refusals{"forward: what cannot run is refused and changes nothing", [] {
  const auto context = test::createContext(demo(), KvType::F16);
  kv::Sequence sequence(context->pool());
  const auto tokens = someTokens(2049, 7, 4000);
  const auto refuse = [&](std::vector<Segment> segments, ErrorKind kind, const std::string& what) {
    const auto result = context->forward(segments);
    check(!result && result.error().kind == kind, what);
    check(sequence.length() == 0, what + " changes nothing");
  };
  const std::vector<int32_t> outside = {4096}, negative = {-1}, one = {1};
  refuse({}, ErrorKind::Rejected, "no segment");
  refuse({{&sequence, {}, Logits::Last}}, ErrorKind::Rejected, "no token");
  refuse({{&sequence, outside, Logits::Last}}, ErrorKind::Rejected, "a token past the vocabulary");
  refuse({{&sequence, negative, Logits::Last}}, ErrorKind::Rejected, "a negative token");
  refuse({{&sequence, one, Logits::Last}, {&sequence, one, Logits::Last}}, ErrorKind::Rejected, "a sequence twice");
  refuse({{&sequence, std::span(tokens).first(257), Logits::Last}}, ErrorKind::Rejected, "more rows than a batch has");
  refuse({{&sequence, tokens, Logits::Last}}, ErrorKind::Rejected, "more tokens than the context has");

  std::vector<kv::BlockId> taken;
  while (context->pool().freeBlocks() > 0) taken.push_back(test::expect(context->pool().acquire()));
  refuse({{&sequence, one, Logits::Last}}, ErrorKind::OutOfMemory, "no free block");
  for (const kv::BlockId id : taken) context->pool().release(id);
  const Segment fine{&sequence, one, Logits::Last};
  test::expect(context->forward({&fine, 1}));
}};

const Test padding{"forward: rows of padding in the vocabulary have no logits", [] {
  TinyModel tiny;
  tiny.rows = 48;
  const TemporaryFile file(tiny.bytes());
  const auto model = test::loadModel(file.path(), cpu::detectIsa());
  check(model->config().vocabulary == 48 && model->config().tokens == 40);
  const auto context = test::createContext(model, KvType::F32);
  const auto logits = test::allLogits(*context, std::vector<int32_t>{1, 2}, 2);
  for (size_t i = 0; i < logits.size(); ++i)
    check(i % 48 < 40 ? std::isfinite(logits[i]) : logits[i] == -std::numeric_limits<float>::infinity());
  kv::Sequence sequence(context->pool());
  const std::vector<int32_t> token = {40};
  const Segment segment{&sequence, token, Logits::Last};
  const auto refused = context->forward({&segment, 1});
  check(!refused && refused.error().kind == ErrorKind::Rejected);
}};

const Test scales{"forward: the scale of a linear layer is that of its weights, and any layer may have a bias", [] {
  const auto logitsOf = [](const TinyModel& tiny) {
    const TemporaryFile file(tiny.bytes());
    const auto context = test::createContext(test::loadModel(file.path(), cpu::detectIsa()), KvType::F32);
    return test::allLogits(*context, std::vector<int32_t>{1, 2, 3}, 3);
  };
  const auto plain = logitsOf({});
  for (const std::string layer : {"attn_q", "attn_output", "ffn_gate", "ffn_down"}) {
    TinyModel halved, scaled, shifted;
    halved.halved = "blk.0." + layer + ".weight";
    scaled.more = [&](auto& w) { w.tensor("blk.0." + layer + ".scale", {1}, 0, std::string("\0\0\0\x3f", 4)); };
    const auto want = logitsOf(halved);
    check(!test::sameBits(want, plain) && test::sameBits(logitsOf(scaled), want), layer + ".scale");
    const size_t outputs = layer == "ffn_gate" ? TinyModel::FeedForward : TinyModel::Width;
    shifted.more = [&](auto& w) { w.tensor("blk.0." + layer + ".bias", {outputs}, 0, TinyModel::values(outputs)); };
    check(!test::sameBits(logitsOf(shifted), plain), layer + ".bias");
  }
}};

const Test contexts{"context: the default fits, what does not says what would, and that does", [] {
  const auto model = demo();
  const auto plan = model->plan({});
  check(plan.weights > 6'000'000 && plan.available > 0 && plan.contextLength == std::min({131072u, model::DefaultContext, plan.largestContext}));
  const ContextOptions huge{4'000'000, 131072, KvType::F32, 64};
  const auto refused = Context::create(model, huge);
  check(!refused && refused.error().kind == ErrorKind::OutOfMemory, "4 million slots");
  const auto measured = model->plan(huge);
  check(refused.error().message.find("the most slots with ctx 131072") != std::string::npos, refused.error().message);
  check(measured.largestSlots < huge.slots && measured.kvCache > measured.available);
  const auto tooLong = Context::create(model, {1, 131073, KvType::F16, 64});
  check(!tooLong && tooLong.error().kind == ErrorKind::Rejected);
  check(!Context::create(model, {0, 64, KvType::F16, 64}) && !Context::create(model, {1, 64, KvType::F16, 0}));
  const auto context = test::expect(Context::create(model, {3, 100, KvType::F16, 16}));
  check(context->slots() == 3 && context->contextLength() == 100 && context->pool().totalBlocks() == 12);
}};

const Test plans{"memory: the plan is arithmetic, and its largest values are the largest", [] {
  model::Config config;
  config.width = 64;
  config.layers.resize(1);
  config.layers[0].feedForward = 128;
  model::Attention& attention = config.layers[0].attention.emplace();
  attention.heads = attention.kvHeads = 2;
  attention.keyLength = attention.valueLength = 32;
  config.vocabulary = 1000;
  config.contextLength = 100000;
  const uint64_t blockBytes = 1 << 20, available = 10'000'000'000;
  const auto plan = [&](uint32_t slots, uint32_t context) { return model::planMemory(config, {slots, context, KvType::F16, 256}, 1'000'000, {blockBytes, 0}, available); };
  const auto free = plan(8, 0);
  check(model::fits(free) && free.contextLength == std::min(model::DefaultContext, free.largestContext) && free.largestContext % kv::BlockTokens == 0);
  check(model::fits(plan(8, free.largestContext)) && !model::fits(plan(8, free.largestContext + 1)));
  const auto long1 = plan(1, 100000);
  check(model::fits(plan(long1.largestSlots, 100000)) && !model::fits(plan(long1.largestSlots + 1, 100000)));
  check(long1.kvCache == 3125 * blockBytes);
  const auto nothing = model::planMemory(config, {1, 0, KvType::F16, 256}, available, {blockBytes, 0}, available);
  check(!model::fits(nothing) && nothing.largestContext == 0);
  check(!model::fits(plan(std::numeric_limits<uint32_t>::max(), 100000)), "no overflow");
}};

const Test progress{"model: loading reports a rising fraction that ends at 1", test::threaded, [] {
  std::vector<double> seen;
  const std::string path = (test::projectRoot() / "models/mashbox-demo.gguf").string();
  test::expect(model::Model::load({path, 2, cpu::detectIsa(), [&](double fraction) { seen.push_back(fraction); }}));
  check(!seen.empty() && seen.back() == 1 && std::is_sorted(seen.begin(), seen.end()) && seen.front() > 0);
}};

const Test containers{"model: files that differ only in their container give the logits of the base file", [] {
  const auto folder = test::golden("broken/index.json").parent_path();
  const std::vector<int32_t> tokens = {5, 6, 7};
  const auto logitsOf = [&](const std::string& name) {
    const auto context = test::createContext(test::loadModel(folder / name, cpu::detectIsa()), KvType::F32);
    return test::allLogits(*context, tokens, 3);
  };
  const auto base = logitsOf("base.gguf");
  const auto index = test::Json::load(folder / "index.json");
  size_t compared = 0;
  for (const auto& entry : index["cases"].list()) {
    const auto& expected = entry["expect"].list();
    if (expected.size() != 1 || expected[0].string() != "ok") continue;
    check(test::sameBits(logitsOf(entry["file"].string()), base), entry["file"].string());
    ++compared;
  }
  check(compared >= 8, "several such files");
}};

const Test notFinite{"forward: weights that are not finite end in numbers, not in a crash", [] {
  for (const char* name : {"broken/weight-nan.gguf", "broken/weight-inf.gguf", "broken/scale-nan.gguf", "broken/scale-inf.gguf"})
    for (const cpu::Isa isa : test::availableTiers()) {
      const auto context = test::createContext(test::loadModel(test::golden(name), isa), KvType::F16);
      check(test::allLogits(*context, std::vector<int32_t>{0, 5, 6, 7}, 4).size() == 4 * context->model().config().vocabulary, name);
    }
}};

} // namespace
} // namespace mashbox
