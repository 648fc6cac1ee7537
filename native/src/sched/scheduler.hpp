#pragma once

#include "base/result.hpp"
#include "model/model.hpp"
#include "sample/sampler.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace mashbox::sched {

struct Request {
  uint32_t id;
  std::vector<int32_t> tokens;     ///< the prompt, at least one token
  uint32_t maxTokens;              ///< at least 1
  sample::Sampling sampling;
  std::vector<int32_t> stopTokens; ///< end the output; not reported as tokens
};

enum class FinishReason : uint8_t { Stop = 0, Length = 1, Cancelled = 2 };

struct TokenEvent { uint32_t id; int32_t token; };
struct ProgressEvent { uint32_t id; uint32_t processed, total; };
struct DoneEvent {
  uint32_t id;
  FinishReason reason;
  uint32_t promptTokens, cachedTokens, generatedTokens;
  double queueMs, promptMs, generationMs;
};
struct FailedEvent { uint32_t id; Error error; };
using Event = std::variant<TokenEvent, ProgressEvent, DoneEvent, FailedEvent>;

struct Stats { uint32_t running, waiting, freeBlocks, totalBlocks; uint64_t steps; };

/// Continuous batching on a thread of its own: each step runs one row of every decoding slot first, then prefill chunks, shared
/// fairly between slots, up to the batch size. Cancellation is seen between steps.
class Scheduler {
public:
  /// `onStep` is called on the scheduler's thread, once per step, with all events of that step.
  Scheduler(std::unique_ptr<model::Context> context, std::function<void(std::span<const Event>)> onStep);
  ~Scheduler(); ///< stops after the running step and joins; unfinished requests get no further event
  Result<void> submit(Request request); ///< Rejected: empty prompt, token out of range, prompt + 1 > context, id in use
  void cancel(uint32_t id);             ///< answered by a DoneEvent (Cancelled); unknown ids are ignored
  Stats stats() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace mashbox::sched
