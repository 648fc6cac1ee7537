#include "fake_decoder.hpp"
#include "sched/step_plan.hpp"

#include <algorithm>
#include <map>

namespace {

using namespace mashbox;
using namespace mashbox::test;

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

const Test invariance{"scheduler: eight concurrent seeded requests equal each alone, in any batch size and order", test::threaded, [] {
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

const Test accounting{"scheduler: counts, progress and timings of one request", test::threaded, [] {
  const auto outcome = alone(request(3, 150, 7), {.batchTokens = 64});
  check(outcome.progress == std::vector<std::pair<uint32_t, uint32_t>>{{64, 150}, {128, 150}, {150, 150}});
  check(outcome.done->promptTokens == 150 && outcome.done->cachedTokens == 0 && outcome.done->generatedTokens == 7);
  check(outcome.done->queueMs >= 0 && outcome.done->promptMs > 0 && outcome.done->generationMs > 0);
}};

const Test length{"scheduler: output ends at maxTokens or where the context ends", test::threaded, [] {
  check(alone(request(1, 10, 1)).tokens.size() == 1);
  const auto full = alone(request(1, 90, 1000), {.contextLength = 100});
  check(full.tokens.size() == 10 && full.done->reason == FinishReason::Length);
  check(alone(request(1, 99, 1000), {.contextLength = 100}).tokens.size() == 1, "a prompt that leaves room for one token");
}};

const Test stopping{"scheduler: a stop token ends the output and is not reported", test::threaded, [] {
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

const Test minimum{"scheduler: no stop token before minTokens, every one after", test::threaded, [] {
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

const Test logprobs{"scheduler: log probabilities change no token and come with every one", test::threaded, [] {
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

const Test validation{"scheduler: submit rejects what cannot run, and names the field", test::threaded, [] {
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

const Test fairness{"scheduler: a long prompt does not stall decoding, and short prompts overtake it", test::threaded, [] {
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

const Test queueing{"scheduler: requests beyond the slots wait in order", test::threaded, [] {
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

} // namespace
