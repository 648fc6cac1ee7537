#pragma once

#include "kv/block_pool.hpp"
#include "model/model.hpp"
#include "sample/logprobs.hpp"
#include "sample/sampler.hpp"
#include "sched/constraint.hpp"
#include "sched/event.hpp"
#include "sched/grammar_compiler.hpp"
#include "sched/passage_limit.hpp"
#include "sched/request.hpp"
#include "sched/step_plan.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mashbox::sched {

using Clock = std::chrono::steady_clock;

/// A submitted request that waits for a slot.
struct Arrival {
  Request request;
  Clock::time_point submitted;
  std::shared_ptr<const PendingGrammar> grammar{}; ///< of the request, where it has one
  uint32_t renewals = 0; ///< times the grammar was asked for again, because outputs of others had used it up

  bool ready() const { return !grammar || grammar->ready(); }

  DoneEvent cancelled() const; ///< its end when it is cancelled before it ever ran
};

/// A running request: its tokens, its KV cache and its place in the batch.
class Slot {
public:
  /// The arrival is ready, and its grammar has no error.
  Slot(Arrival arrival, kv::BlockPool& pool, uint32_t contextLength, uint64_t step);

  uint32_t id() const { return id_; }
  Demand demand() const; ///< nothing while parked
  /// Reserves room for up to `rows` more tokens, as many as the pool has blocks for.
  uint32_t reserve(uint32_t rows);
  /// The next `rows` tokens as a segment of a batch; logits are wanted where they are the last ones known.
  model::Segment segment(uint32_t rows);

  /// After its rows were run: reports progress, or draws the next token from `logits` (empty where none were wanted).
  /// True when that ended the request.
  bool advance(std::span<const float> logits, uint64_t step, std::vector<Event>& events);
  DoneEvent done(FinishReason reason) const;

  /// Gives its blocks back; everything is run again after `unpark`. The output does not depend on it.
  void park(kv::BlockPool& pool);
  void unpark() { parked_ = false; }
  bool parked() const { return parked_; }

private:
  bool wantsLogits(uint32_t rows) const { return sequence_.length() + rows == history_.size(); }
  bool draw(std::span<const float> logits, std::vector<Event>& events);
  /// Takes a token into the output and reports it; true where that is the last one that has room.
  bool take(int32_t token, std::span<const float> logits, std::vector<Event>& events);
  bool takeAhead(std::vector<Event>& events);
  uint32_t generated() const { return static_cast<uint32_t>(history_.size()) - promptTokens_; }

  uint32_t id_;
  uint32_t promptTokens_;
  uint32_t longest_; ///< prompt and output at most
  std::vector<int32_t> history_;
  std::vector<int32_t> stopTokens_;
  uint32_t minTokens_;
  std::optional<uint32_t> topLogprobs_;
  sample::LogprobReader logprobs_;
  sample::Sampler sampler_;
  PassageFollower passage_;
  std::optional<Constraint> constraint_;
  bool greedySyntax_;
  kv::Sequence sequence_;
  uint32_t progress_ = 0; ///< prompt tokens reported as processed
  uint64_t lastServed_;
  bool parked_ = false;
  Clock::time_point submitted_, admitted_;
  std::optional<Clock::time_point> firstDrawn_;
};

} // namespace mashbox::sched
