#include "engine.hpp"
#include "sched/step_plan.hpp"
#include "test.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace {

using namespace mashbox;
using namespace mashbox::sched;
using mashbox::test::check;
using mashbox::test::Engine;
using mashbox::test::Outcome;
using mashbox::test::Test;

constexpr uint32_t Vocabulary = 97, Known = 90;

/// What one forward call was asked to run.
struct Step {
  std::vector<uint32_t> decodeRows, prefillRows; ///< rows per segment; a single row at a position > 0 counts as decode
};

/// A decoder whose KV cache is real (tokens stored in the pool's blocks) and whose logits are a hash of the whole sequence as read
/// back through its block table: a request that saw another's tokens would draw other tokens.
class FakeDecoder : public Decoder {
public:
  struct Options {
    uint32_t contextLength = 512, slots = 4, batchTokens = 64, blocks = 64;
  };

  /// Shared with the test, because the scheduler owns the decoder.
  struct Log {
    std::mutex mutex;
    std::vector<Step> steps;
    std::string violation;
    std::function<Result<void>(uint64_t step)> before = [](uint64_t) { return Result<void>{}; };
  };

  FakeDecoder(Options options, std::shared_ptr<Log> log)
      : options_(options), log_(std::move(log)), pool_(options.blocks), memory_(options.blocks * kv::BlockTokens) {}

  uint32_t vocabularySize() const override { return Vocabulary; }
  uint32_t knownTokens() const override { return Known; }
  uint32_t contextLength() const override { return options_.contextLength; }
  uint32_t slots() const override { return options_.slots; }
  uint32_t batchTokens() const override { return options_.batchTokens; }
  kv::BlockPool& pool() override { return pool_; }

  Result<std::span<const float>> forward(std::span<const model::Segment> segments) override {
    if (auto go = log_->before(count_++); !go) return go.error();
    Step step;
    uint32_t rows = 0;
    std::set<uint32_t> blocks;
    logits_.clear();
    for (const auto& [sequence, tokens, wanted] : segments) {
      rows += static_cast<uint32_t>(tokens.size());
      for (const int32_t token : tokens) expect(token >= 0 && token < static_cast<int32_t>(Known), "a token without a text");
      (tokens.size() == 1 && sequence->length() > 0 ? step.decodeRows : step.prefillRows).push_back(static_cast<uint32_t>(tokens.size()));
      expect(!tokens.empty(), "an empty segment");
      expect(sequence->length() + tokens.size() <= sequence->blocks().size() * kv::BlockTokens, "rows without reserved blocks");
      expect(sequence->length() + tokens.size() <= options_.contextLength, "rows beyond the context");
      for (const auto block : sequence->blocks()) expect(blocks.insert(static_cast<uint32_t>(block)).second, "a block in two sequences");
      const auto cell = [&](uint32_t position) -> int32_t& {
        return memory_[static_cast<uint32_t>(sequence->blocks()[position / kv::BlockTokens]) * kv::BlockTokens + position % kv::BlockTokens];
      };
      for (size_t i = 0; i < tokens.size(); ++i) cell(sequence->length() + static_cast<uint32_t>(i)) = tokens[i];
      sequence->advance(static_cast<uint32_t>(tokens.size()));
      if (wanted == model::Logits::None) continue;
      uint32_t hash = 2166136261;
      for (uint32_t position = 0; position < sequence->length(); ++position) hash = (hash ^ static_cast<uint32_t>(cell(position) + 1)) * 16777619;
      for (uint32_t i = 0; i < Vocabulary; ++i) {
        hash = hash * 1664525 + 1013904223;
        logits_.push_back(i < Known ? static_cast<float>(hash >> 20) / 1024.0f : -INFINITY);
      }
    }
    expect(rows <= options_.batchTokens, "more rows than a batch holds");
    const std::lock_guard lock(log_->mutex);
    log_->steps.push_back(step);
    return std::span<const float>(logits_);
  }

private:
  void expect(bool condition, const char* what) {
    if (condition) return;
    const std::lock_guard lock(log_->mutex);
    log_->violation = what;
  }

  Options options_;
  std::shared_ptr<Log> log_;
  kv::BlockPool pool_;
  std::vector<int32_t> memory_;
  std::vector<float> logits_;
  uint64_t count_ = 0;
};

/// Holds the scheduler inside a forward call until it is opened.
class Gate {
public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void waitForArrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ > 0; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
};

std::vector<int32_t> prompt(uint32_t seed, size_t length) {
  std::vector<int32_t> tokens(length);
  for (size_t i = 0; i < length; ++i) tokens[i] = static_cast<int32_t>((seed * 31 + i * i * 7 + i) % Known);
  return tokens;
}

Request request(uint32_t id, size_t promptLength, uint32_t maxTokens, float temperature = 1) {
  return {
    .id = id,
    .tokens = prompt(id, promptLength),
    .maxTokens = maxTokens,
    .sampling = {.temperature = temperature, .topP = 0.9f, .seed = id * 1000 + 1},
    .stopTokens = {},
  };
}

/// A fake engine whose first step waits until `open`, so that everything submitted before runs together.
struct Held {
  explicit Held(FakeDecoder::Options options)
      : log(std::make_shared<FakeDecoder::Log>()), gate(std::make_shared<Gate>()), engine((arm(), std::make_unique<FakeDecoder>(options, log))) {}
  ~Held() { gate->open(); }

  void arm() {
    log->before = [gate = gate](uint64_t step) {
      if (step == 0) gate->pass();
      return Result<void>{};
    };
  }
  std::vector<Step> steps() {
    const std::lock_guard lock(log->mutex);
    check(log->violation.empty(), log->violation);
    return log->steps;
  }

  std::shared_ptr<FakeDecoder::Log> log;
  std::shared_ptr<Gate> gate;
  Engine engine;
};

std::unique_ptr<Decoder> fake(FakeDecoder::Options options = {}) {
  return std::make_unique<FakeDecoder>(options, std::make_shared<FakeDecoder::Log>());
}

Outcome alone(Request r, FakeDecoder::Options options = {}) {
  Engine engine(fake(options));
  const uint32_t id = r.id;
  engine.submit(std::move(r));
  return engine.wait(id);
}

const Test planning{"scheduler: a step is decode rows first, then equal prefill chunks, least recently served first", [] {
  const auto plan = [](std::vector<Demand> demands, uint32_t budget) {
    std::vector<std::pair<size_t, uint32_t>> rows;
    for (const auto& [index, count] : planStep(demands, budget)) rows.emplace_back(index, count);
    return rows;
  };
  using Rows = std::vector<std::pair<size_t, uint32_t>>;
  check(plan({}, 64).empty());
  check(plan({{500, false, 9}, {1, true, 9}, {1, true, 8}}, 64) == Rows{{2, 1}, {1, 1}, {0, 62}}, "decode never waits for prefill");
  check(plan({{500, false, 0}, {500, false, 0}}, 100) == Rows{{0, 50}, {1, 50}}, "equal shares");
  check(plan({{500, false, 0}, {10, false, 0}}, 100) == Rows{{0, 90}, {1, 10}}, "what one does not need goes to the others");
  check(plan({{500, false, 5}, {500, false, 4}, {500, false, 6}}, 40) == Rows{{1, 32}, {0, 8}}, "chunks are not cut too fine");
  check(plan({{1, true, 0}, {1, true, 1}, {1, true, 0}}, 2) == Rows{{0, 1}, {2, 1}}, "more decodes than rows");
  check(plan({{0, false, 0}, {3, false, 0}}, 64) == Rows{{1, 3}}, "nothing demanded, nothing granted");
}};

const Test invariance{"scheduler: eight concurrent seeded requests equal each alone, in any batch size and order", [] {
  std::map<uint32_t, std::vector<int32_t>> expected;
  for (uint32_t id = 1; id <= 8; ++id) {
    const auto outcome = alone(request(id, 5 + id * 23, 40));
    check(outcome.tokens.size() == 40 && outcome.done->reason == FinishReason::Length);
    expected[id] = outcome.tokens;
  }
  check(expected[1] != expected[2]);
  for (const uint32_t batch : {8u, 33u, 256u})
    for (const bool reversed : {false, true}) {
      Held held({.slots = 8, .batchTokens = batch, .blocks = 128});
      for (uint32_t i = 1; i <= 8; ++i) held.engine.submit(request(reversed ? 9 - i : i, 5 + (reversed ? 9 - i : i) * 23, 40));
      held.gate->open();
      for (uint32_t id = 1; id <= 8; ++id) check(held.engine.wait(id).tokens == expected[id], "request " + std::to_string(id));
      const auto steps = held.steps();
      const auto together = std::any_of(steps.begin(), steps.end(), [](const Step& s) { return s.decodeRows.size() == 8; });
      check(together || batch == 8, "they ran together");
    }
}};

const Test accounting{"scheduler: counts, progress and timings of one request", [] {
  const auto outcome = alone(request(3, 150, 7), {.batchTokens = 64});
  check(outcome.progress == std::vector<std::pair<uint32_t, uint32_t>>{{64, 150}, {128, 150}, {150, 150}});
  check(outcome.done->promptTokens == 150 && outcome.done->cachedTokens == 0 && outcome.done->generatedTokens == 7);
  check(outcome.done->queueMs >= 0 && outcome.done->promptMs > 0 && outcome.done->generationMs > 0);
}};

const Test length{"scheduler: output ends at maxTokens or where the context ends", [] {
  check(alone(request(1, 10, 1)).tokens.size() == 1);
  const auto full = alone(request(1, 90, 1000), {.contextLength = 100});
  check(full.tokens.size() == 10 && full.done->reason == FinishReason::Length);
  check(alone(request(1, 99, 1000), {.contextLength = 100}).tokens.size() == 1, "a prompt that leaves room for one token");
}};

const Test stopping{"scheduler: a stop token ends the output and is not reported", [] {
  const auto free = alone(request(5, 20, 30, 0)).tokens;
  const auto second = std::find_if(free.begin(), free.end(), [&](int32_t token) { return token != free[0]; });
  auto r = request(5, 20, 30, 0);
  r.stopTokens = {*second};
  const auto stopped = alone(r);
  check(stopped.done->reason == FinishReason::Stop);
  check(stopped.tokens == std::vector<int32_t>(free.begin(), second));
  check(stopped.done->generatedTokens == stopped.tokens.size());
  check(stopped.stopToken == *second, "which one it was");
  r.stopTokens = {free[0]};
  const auto empty = alone(r);
  check(empty.tokens.empty() && empty.done->reason == FinishReason::Stop && empty.done->generatedTokens == 0, "the first token may be it");
}};

const Test minimum{"scheduler: no stop token before minTokens, every one after", [] {
  const auto free = alone(request(5, 20, 30, 0)).tokens;
  auto r = request(5, 20, 30, 0);
  r.stopTokens = {free[0], free[1]};
  check(alone(r).tokens.empty());
  for (const uint32_t least : {1u, 4u, 30u, 1000u}) {
    r.minTokens = least;
    const auto outcome = alone(r);
    const auto masked = std::min<size_t>(least, outcome.tokens.size());
    for (size_t i = 0; i < masked; ++i) check(outcome.tokens[i] != free[0] && outcome.tokens[i] != free[1]);
    check(outcome.tokens.size() >= std::min(least, 30u));
  }
}};

const Test logprobs{"scheduler: log probabilities change no token and come with every one", [] {
  auto r = request(5, 20, 30);
  const auto plain = alone(r);
  check(plain.logprobs.empty());
  for (const uint32_t top : {0u, 3u, 20u}) {
    r.topLogprobs = top;
    const auto scored = alone(r);
    check(scored.tokens == plain.tokens && scored.logprobs.size() == plain.tokens.size());
    for (size_t i = 0; i < scored.tokens.size(); ++i) {
      const auto& [chosen, alternatives] = scored.logprobs[i];
      check(alternatives.size() == top && chosen <= 0);
      for (const auto& [logprob, token] : alternatives) check(token != scored.tokens[i] || logprob == chosen);
    }
  }
}};

const Test validation{"scheduler: submit rejects what cannot run, and names the field", [] {
  Held held({.contextLength = 100});
  auto& scheduler = held.engine.scheduler();
  const auto subject = [&](Request r) {
    const auto result = scheduler.submit(std::move(r));
    check(!result && result.error().kind == ErrorKind::Rejected && !result.error().message.empty());
    return result.error().subject;
  };
  check(subject(request(1, 0, 5)) == "tokens");
  check(subject(request(1, 100, 5)) == "tokens", "no room for output");
  check(subject(request(1, 5, 0)) == "maxTokens");
  auto many = request(1, 5, 5);
  many.topLogprobs = 21;
  check(subject(many) == "topLogprobs");
  for (const int32_t token : {-1, static_cast<int32_t>(Known), static_cast<int32_t>(Vocabulary), INT32_MIN, INT32_MAX}) {
    auto r = request(1, 5, 5);
    r.tokens[3] = token;
    check(subject(r) == "tokens");
    r = request(1, 5, 5);
    r.sampling.logitBias = {{token, 1.0f}};
    check(subject(r) == "logitBias");
  }
  held.engine.submit(request(1, 5, 5));
  check(subject(request(1, 5, 5)) == "id", "in use while it waits or runs");
  held.gate->open();
  held.engine.wait(1);
  held.engine.submit(request(1, 5, 5));
}};

const Test fairness{"scheduler: a long prompt does not stall decoding, and short prompts overtake it", [] {
  Held held({.contextLength = 4096, .slots = 4, .batchTokens = 64, .blocks = 256});
  held.engine.submit(request(1, 4, 200));
  held.gate->waitForArrival();
  held.engine.submit(request(2, 3000, 2));
  held.engine.submit(request(3, 40, 2));
  held.gate->open();
  for (const uint32_t id : {1u, 2u, 3u}) held.engine.wait(id);
  const auto steps = held.steps();
  for (size_t i = 1; i < 40; ++i) {
    const auto& decodes = steps[i].decodeRows;
    check(!decodes.empty(), "step " + std::to_string(i) + " decodes nothing");
    uint32_t rows = static_cast<uint32_t>(decodes.size());
    for (const uint32_t prefill : steps[i].prefillRows) rows += prefill;
    check(rows == 64, "step " + std::to_string(i) + " is not full: " + std::to_string(rows));
  }
  check(steps[1].prefillRows.size() == 2 && steps[1].prefillRows[0] >= 31 && steps[1].prefillRows[1] >= 31, "both prompts start at once");
}};

const Test queueing{"scheduler: requests beyond the slots wait in order", [] {
  std::vector<uint32_t> order;
  const auto log = std::make_shared<FakeDecoder::Log>();
  const auto gate = std::make_shared<Gate>();
  log->before = [gate](uint64_t step) {
    if (step == 0) gate->pass();
    return Result<void>{};
  };
  Engine engine(std::make_unique<FakeDecoder>(FakeDecoder::Options{.slots = 1}, log), [&](const Event& event) {
    if (const auto* done = std::get_if<DoneEvent>(&event)) order.push_back(done->id);
  });
  for (const uint32_t id : {7u, 3u, 9u, 1u}) engine.submit(request(id, 10, 3));
  gate->waitForArrival();
  const auto stats = engine.scheduler().stats();
  check(stats.running == 1 && stats.waiting == 3);
  gate->open();
  for (const uint32_t id : {7u, 3u, 9u, 1u}) engine.wait(id);
  engine.destroy();
  check(order == std::vector<uint32_t>{7, 3, 9, 1});
}};

const Test cancelling{"scheduler: cancelling frees the slot and its blocks, running or waiting", [] {
  Held held({.slots = 1, .blocks = 8});
  held.engine.submit(request(1, 100, 100));
  held.engine.submit(request(2, 10, 5));
  held.engine.submit(request(3, 10, 5));
  held.gate->waitForArrival();
  held.engine.scheduler().cancel(2);
  held.engine.scheduler().cancel(77);
  held.gate->open();
  held.engine.waitForTokens(1, 3);
  held.engine.scheduler().cancel(1);
  const auto running = held.engine.wait(1), waiting = held.engine.wait(2), next = held.engine.wait(3);
  check(running.done->reason == FinishReason::Cancelled || running.tokens.size() == 100);
  check(running.done->generatedTokens == running.tokens.size());
  check(waiting.done->reason == FinishReason::Cancelled && waiting.tokens.empty() && waiting.progress.empty() && waiting.done->promptTokens == 10);
  check(next.done->reason == FinishReason::Length && next.tokens == alone(request(3, 10, 5)).tokens);
  const auto stats = held.engine.scheduler().stats();
  check(stats.running == 0 && stats.waiting == 0 && stats.freeBlocks == 8 && stats.totalBlocks == 8);
  check(running.afterEnd == 0 && waiting.afterEnd == 0);
}};

const Test cancelledPrefill{"scheduler: cancelling between prefill chunks", [] {
  Held held({.contextLength = 2000, .batchTokens = 32});
  held.engine.submit(request(1, 1900, 5));
  held.gate->waitForArrival();
  held.engine.scheduler().cancel(1);
  held.gate->open();
  const auto outcome = held.engine.wait(1);
  check(outcome.done->reason == FinishReason::Cancelled && outcome.tokens.empty());
  check(held.steps().size() == 1, "the chunk that ran was the last");
}};

const Test reusedId{"scheduler: a late cancel does not reach the next request of the same id", [] {
  const auto log = std::make_shared<FakeDecoder::Log>();
  const auto gate = std::make_shared<Gate>();
  log->before = [gate](uint64_t step) {
    if (step == 0) gate->pass();
    return Result<void>{};
  };
  std::vector<FinishReason> ends;
  std::function<void()> resubmit;
  Engine engine(std::make_unique<FakeDecoder>(FakeDecoder::Options{}, log), [&](const Event& event) {
    const auto* done = std::get_if<DoneEvent>(&event);
    if (!done || done->id != 4) return;
    ends.push_back(done->reason);
    if (ends.size() == 1) resubmit();
  });
  resubmit = [&] {
    engine.submit(request(4, 10, 8));
    engine.submit(request(5, 10, 20));
  };
  engine.submit(request(4, 10, 1));
  gate->waitForArrival();
  engine.scheduler().cancel(4); // its only step is running: it ends before the cancellation is seen
  gate->open();
  engine.wait(5);
  engine.destroy();
  check(ends == std::vector{FinishReason::Length, FinishReason::Length});
}};

const Test exhaustion{"scheduler: a request that needs more than all blocks fails with OutOfMemory", [] {
  Engine engine(fake({.blocks = 3}));
  engine.submit(request(1, 60, 200));
  const auto outcome = engine.wait(1);
  check(outcome.failed && outcome.failed->kind == ErrorKind::OutOfMemory && outcome.failed->subject == "kv");
  check(outcome.tokens.size() == 3 * 32 - 60 + 1 && !outcome.done, "it ran until the blocks ended");
  check(engine.scheduler().stats().freeBlocks == 3);
  engine.submit(request(2, 10, 5));
  check(engine.wait(2).done->reason == FinishReason::Length, "the engine goes on");
}};

const Test contention{"scheduler: requests that run dry together pause, start over and still give the same tokens", [] {
  for (const uint32_t blocks : {6u, 8u, 11u}) {
    Held held({.slots = 8, .batchTokens = 48, .blocks = blocks});
    for (uint32_t id = 1; id <= 8; ++id) held.engine.submit(request(id, 20 + id * 5, 100));
    held.gate->open();
    for (uint32_t id = 1; id <= 8; ++id) {
      const auto outcome = held.engine.wait(id);
      check(outcome.done && outcome.done->reason == FinishReason::Length, "request " + std::to_string(id));
      check(outcome.tokens == alone(request(id, 20 + id * 5, 100)).tokens, "request " + std::to_string(id));
      check(std::is_sorted(outcome.progress.begin(), outcome.progress.end()), "progress never goes back");
    }
    held.steps();
    check(held.engine.scheduler().stats().freeBlocks == blocks);
  }
}};

const Test failure{"scheduler: an error of the forward pass fails the requests of that batch alone", [] {
  const auto log = std::make_shared<FakeDecoder::Log>();
  log->before = [](uint64_t step) -> Result<void> {
    if (step == 2) return Error{ErrorKind::OutOfMemory, "the device is full", "scratch"};
    return {};
  };
  Engine engine(std::make_unique<FakeDecoder>(FakeDecoder::Options{.slots = 1}, log));
  engine.submit(request(1, 10, 50));
  engine.submit(request(2, 10, 50));
  const auto failed = engine.wait(1);
  check(failed.failed && failed.failed->message == "the device is full" && failed.tokens.size() == 2);
  const auto next = engine.wait(2);
  check(next.done && next.tokens == alone(request(2, 10, 50)).tokens);
  check(engine.scheduler().stats().freeBlocks == 64);
}};

const Test allocationFailure{"scheduler: a failed allocation inside a step is an event, not an abort", [] {
  const auto log = std::make_shared<FakeDecoder::Log>();
  log->before = [](uint64_t step) -> Result<void> {
    if (step == 1) throw std::bad_alloc();
    return {};
  };
  Engine engine(std::make_unique<FakeDecoder>(FakeDecoder::Options{}, log));
  engine.submit(request(1, 10, 50));
  const auto outcome = engine.wait(1);
  check(outcome.failed && outcome.failed->kind == ErrorKind::OutOfMemory);
  engine.submit(request(2, 10, 5));
  check(engine.wait(2).done.has_value());
}};

const Test destruction{"scheduler: destruction with work running joins, and reports nothing afterwards", [] {
  for (int round = 0; round < 20; ++round) {
    Engine engine(fake({.contextLength = 100'000, .blocks = 4000}));
    for (uint32_t id = 1; id <= 6; ++id) engine.submit(request(id, 50, 90'000));
    engine.waitForTokens(1, static_cast<size_t>(round));
    engine.destroy();
  }
  Engine idle(fake());
  idle.destroy();
}};

const Test contended{"scheduler: submits and cancels from several threads, even from inside onStep", [] {
  std::atomic<int> ended = 0;
  Scheduler* scheduler = nullptr;
  std::mutex ready;
  Engine engine(fake({.slots = 8, .blocks = 40}), [&](const Event& event) {
    if (const auto* done = std::get_if<DoneEvent>(&event)) {
      ++ended;
      const std::lock_guard lock(ready);
      if (done->id < 100) check(static_cast<bool>(scheduler->submit(request(done->id + 1000, 5, 2))));
    }
  });
  {
    const std::lock_guard lock(ready);
    scheduler = &engine.scheduler();
  }
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 20; ++i) {
        const uint32_t id = t * 20 + i;
        if (!engine.scheduler().submit(request(id, 5 + i * 3, 30))) return;
        if (i % 3 == 0) engine.scheduler().cancel(id);
        engine.scheduler().stats();
      }
    });
  for (auto& thread : threads) thread.join();
  for (uint32_t id = 0; id < 80; ++id) {
    check(engine.wait(id).done.has_value());
    check(engine.wait(id + 1000).done.has_value());
  }
  check(engine.scheduler().stats().freeBlocks == 40);
  engine.destroy();
  check(ended == 160);
}};

} // namespace
