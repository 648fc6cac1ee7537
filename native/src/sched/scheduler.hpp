#pragma once

#include "base/result.hpp"
#include "sched/decoder.hpp"
#include "sched/event.hpp"
#include "sched/request.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace mashbox::sched {

struct Stats {
  uint32_t running, waiting;
  BlockUse blocks;
  uint64_t steps; ///< batches that were run
};

/// Continuous batching on a thread of its own: each step runs one row of every decoding slot first, then prefill chunks, shared
/// fairly between slots, up to the batch size. Requests wait for a slot in the order of their submission. Cancellation is seen
/// between steps. With nothing to run the thread sleeps.
///
/// Blocks are taken as sequences grow. When the pool runs dry, requests that cannot grow pause; when none can, the one that came
/// last gives its blocks back and is run again later, and a request that has the whole pool to itself fails with OutOfMemory.
///
/// A request with a grammar waits until that is compiled, on a thread of its own; others pass it by.
///
/// At most `decoder->batchTokens()` of the decoder's slots are used, so that every slot can have a row in every step.
class Scheduler {
public:
  /// Called on the scheduler's thread, once per step, with all events of that step and the blocks that are in use after it; must not
  /// throw. A request's id is free again when its last event arrives.
  using OnStep = std::function<void(std::span<const Event> events, const BlockUse& blocks)>;

  Scheduler(std::unique_ptr<Decoder> decoder, OnStep onStep);
  ~Scheduler(); ///< stops after the running step and joins; unfinished requests get no further event

  /// Rejected: empty prompt, maxTokens 0, too many topLogprobs, token out of range (prompt or logit bias), prompt + 1 > context, id in use.
  Result<void> submit(Request request);
  void cancel(uint32_t id); ///< answered by a DoneEvent (Cancelled) unless the request ends first; unknown ids are ignored
  Stats stats() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace mashbox::sched
