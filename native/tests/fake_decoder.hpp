#pragma once

#include "engine.hpp"
#include "test.hpp"

#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace mashbox::test {

using namespace sched;

inline constexpr uint32_t Vocabulary = 97, Known = 90;

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
    std::vector<grammar::TokenText> texts{}; ///< none: not known
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
  Result<std::vector<grammar::TokenText>> tokenTexts() const override {
    if (options_.texts.empty()) return Decoder::tokenTexts();
    return options_.texts;
  }

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

inline std::vector<int32_t> prompt(uint32_t seed, size_t length) {
  std::vector<int32_t> tokens(length);
  for (size_t i = 0; i < length; ++i) tokens[i] = static_cast<int32_t>((seed * 31 + i * i * 7 + i) % Known);
  return tokens;
}

inline Request request(uint32_t id, size_t promptLength, uint32_t maxTokens, float temperature = 1) {
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

inline std::unique_ptr<Decoder> fake(FakeDecoder::Options options = {}) {
  return std::make_unique<FakeDecoder>(options, std::make_shared<FakeDecoder::Log>());
}

inline Outcome alone(Request r, FakeDecoder::Options options = {}) {
  Engine engine(fake(options));
  const uint32_t id = r.id;
  engine.submit(std::move(r));
  return engine.wait(id);
}

} // namespace mashbox::test
