#pragma once

#include "sched/scheduler.hpp"
#include "test.hpp"

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace mashbox::test {

/// What a request got, in order.
struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<sample::Logprobs> logprobs; ///< of the tokens, where they were asked for
  std::optional<int32_t> stopToken;
  std::vector<std::pair<uint32_t, uint32_t>> progress;
  std::optional<sched::DoneEvent> done;
  std::optional<Error> failed;
  int afterEnd = 0;
};

/// A scheduler over any decoder whose events are collected per request.
class Engine {
public:
  explicit Engine(std::unique_ptr<sched::Decoder> decoder, std::function<void(const sched::Event&)> onEvent = [](const sched::Event&) {})
      : onEvent_(std::move(onEvent)),
        scheduler_(std::make_unique<sched::Scheduler>(std::move(decoder), [this](std::span<const sched::Event> events, const sched::BlockUse&) { receive(events); })) {}

  sched::Scheduler& scheduler() { return *scheduler_; }
  void destroy() { scheduler_.reset(); }

  void submit(sched::Request request) {
    const auto result = scheduler_->submit(std::move(request));
    check(static_cast<bool>(result), result ? "" : result.error().message);
  }

  Outcome wait(uint32_t id) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outcomes_[id].done || outcomes_[id].failed; });
    return outcomes_[id];
  }

  void waitForTokens(uint32_t id, size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outcomes_[id].tokens.size() >= count; });
  }

private:
  void receive(std::span<const sched::Event> events) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& event : events) {
        Outcome& outcome = outcomes_[std::visit([](const auto& e) { return e.id; }, event)];
        if (outcome.done || outcome.failed) ++outcome.afterEnd;
        if (const auto* token = std::get_if<sched::TokenEvent>(&event)) outcome.tokens.push_back(token->token);
        if (const auto* token = std::get_if<sched::ScoredTokenEvent>(&event)) {
          outcome.tokens.push_back(token->token);
          outcome.logprobs.push_back(token->logprobs);
        }
        if (const auto* token = std::get_if<sched::StopTokenEvent>(&event)) outcome.stopToken = token->token;
        if (const auto* progress = std::get_if<sched::ProgressEvent>(&event)) outcome.progress.emplace_back(progress->processed, progress->total);
        if (const auto* done = std::get_if<sched::DoneEvent>(&event)) outcome.done = *done;
        if (const auto* failed = std::get_if<sched::FailedEvent>(&event)) outcome.failed = failed->error;
      }
    }
    changed_.notify_all();
    for (const auto& event : events) onEvent_(event);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, Outcome> outcomes_;
  std::function<void(const sched::Event&)> onEvent_;
  std::unique_ptr<sched::Scheduler> scheduler_;
};

} // namespace mashbox::test
