#include "fake_decoder.hpp"

#include <atomic>
#include <new>
#include <thread>

namespace {

using namespace mashbox;
using namespace mashbox::test;

const Test cancelling{"scheduler: cancelling frees the slot and its blocks, running or waiting", test::threaded, [] {
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
  check(stats.running == 0 && stats.waiting == 0 && stats.blocks.free() == 8 && stats.blocks.total == 8);
  check(running.afterEnd == 0 && waiting.afterEnd == 0);
}};

const Test cancelledPrefill{"scheduler: cancelling between prefill chunks", test::threaded, [] {
  Held held({.contextLength = 2000, .batchTokens = 32});
  held.engine.submit(request(1, 1900, 5));
  held.gate->waitForArrival();
  held.engine.scheduler().cancel(1);
  held.gate->open();
  const auto outcome = held.engine.wait(1);
  check(outcome.done->reason == FinishReason::Cancelled && outcome.tokens.empty());
  check(held.steps().size() == 1, "the chunk that ran was the last");
}};

const Test reusedId{"scheduler: a late cancel does not reach the next request of the same id", test::threaded, [] {
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

const Test exhaustion{"scheduler: a request that needs more than all blocks fails with OutOfMemory", test::threaded, [] {
  Engine engine(fake({.blocks = 3}));
  engine.submit(request(1, 60, 200));
  const auto outcome = engine.wait(1);
  check(outcome.failed && outcome.failed->kind == ErrorKind::OutOfMemory && outcome.failed->subject == "kv");
  check(outcome.tokens.size() == 3 * 32 - 60 + 1 && !outcome.done, "it ran until the blocks ended");
  check(engine.scheduler().stats().blocks.free() == 3);
  engine.submit(request(2, 10, 5));
  check(engine.wait(2).done->reason == FinishReason::Length, "the engine goes on");
}};

const Test contention{"scheduler: requests that run dry together pause, start over and still give the same tokens", test::threaded, [] {
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
    check(held.engine.scheduler().stats().blocks.free() == blocks);
  }
}};

const Test failure{"scheduler: an error of the forward pass fails the requests of that batch alone", test::threaded, [] {
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
  check(engine.scheduler().stats().blocks.free() == 64);
}};

const Test allocationFailure{"scheduler: a failed allocation inside a step is an event, not an abort", test::threaded, [] {
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

const Test destruction{"scheduler: destruction with work running joins, and reports nothing afterwards", test::threaded, [] {
  for (int round = 0; round < 20; ++round) {
    Engine engine(fake({.contextLength = 100'000, .blocks = 4000}));
    for (uint32_t id = 1; id <= 6; ++id) engine.submit(request(id, 50, 90'000));
    engine.waitForTokens(1, static_cast<size_t>(round));
    engine.destroy();
  }
  Engine idle(fake());
  idle.destroy();
}};

const Test contended{"scheduler: submits and cancels from several threads, even from inside onStep", test::threaded, [] {
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
  check(engine.scheduler().stats().blocks.free() == 40);
  engine.destroy();
  check(ended == 160);
}};

} // namespace
