#include "sched/slot.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::sched {
namespace {

double milliseconds(Clock::duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

} // namespace

DoneEvent Arrival::cancelled() const {
  return {
    .id = request.id,
    .reason = FinishReason::Cancelled,
    .promptTokens = static_cast<uint32_t>(request.tokens.size()),
    .cachedTokens = 0,
    .generatedTokens = 0,
    .queueMs = milliseconds(Clock::now() - submitted),
    .promptMs = 0,
    .generationMs = 0,
  };
}

Slot::Slot(Arrival arrival, kv::BlockPool& pool, uint32_t contextLength, uint64_t step)
    : id_(arrival.request.id),
      promptTokens_(static_cast<uint32_t>(arrival.request.tokens.size())),
      longest_(promptTokens_ + std::min(arrival.request.maxTokens, contextLength - promptTokens_)),
      history_(std::move(arrival.request.tokens)),
      stopTokens_(std::move(arrival.request.stopTokens)),
      minTokens_(arrival.request.minTokens),
      topLogprobs_(arrival.request.topLogprobs),
      sampler_(std::move(arrival.request.sampling)),
      passage_(std::move(arrival.request.limit)),
      sequence_(pool),
      lastServed_(step),
      submitted_(arrival.submitted),
      admitted_(Clock::now()) {}

Demand Slot::demand() const {
  const auto rows = static_cast<uint32_t>(history_.size()) - sequence_.length();
  return {.rows = parked_ ? 0 : rows, .decoding = rows == 1 && generated() > 0, .lastServed = lastServed_};
}

uint32_t Slot::reserve(uint32_t rows, const kv::BlockPool& pool) {
  const uint64_t blocks = sequence_.blocks().size() + uint64_t{pool.freeBlocks()};
  rows = static_cast<uint32_t>(std::min<uint64_t>(rows, blocks * kv::BlockTokens - sequence_.length()));
  return sequence_.reserve(rows) ? rows : 0;
}

model::Segment Slot::segment(uint32_t rows) {
  return {
    .sequence = &sequence_,
    .tokens = std::span(history_).subspan(sequence_.length(), rows),
    .logits = wantsLogits(rows) ? model::Logits::Last : model::Logits::None,
  };
}

bool Slot::advance(std::span<const float> logits, uint64_t step, std::vector<Event>& events) {
  lastServed_ = step;
  if (const uint32_t processed = std::min(sequence_.length(), promptTokens_); processed > progress_) {
    progress_ = processed;
    events.push_back(ProgressEvent{id_, processed, promptTokens_});
  }
  if (logits.empty()) return false;

  const auto forced = passage_.forced();
  const int32_t token = forced ? *forced : sampler_.sample(logits, history_, generated(), generated() < minTokens_ ? std::span<const int32_t>(stopTokens_) : std::span<const int32_t>{});
  if (!firstDrawn_) firstDrawn_ = Clock::now();
  if (!forced && std::find(stopTokens_.begin(), stopTokens_.end(), token) != stopTokens_.end()) {
    events.push_back(StopTokenEvent{id_, token});
    events.push_back(done(FinishReason::Stop));
    return true;
  }
  if (topLogprobs_) events.push_back(ScoredTokenEvent{id_, token, logprobs_.read(logits, token, *topLogprobs_)});
  else events.push_back(TokenEvent{id_, token});
  history_.push_back(token);
  passage_.take(token);
  if (history_.size() < longest_) return false;
  events.push_back(done(FinishReason::Length));
  return true;
}

DoneEvent Slot::done(FinishReason reason) const {
  const auto now = Clock::now();
  return {
    .id = id_,
    .reason = reason,
    .promptTokens = promptTokens_,
    .cachedTokens = 0,
    .generatedTokens = generated(),
    .queueMs = milliseconds(admitted_ - submitted_),
    .promptMs = milliseconds(firstDrawn_.value_or(now) - admitted_),
    .generationMs = firstDrawn_ ? milliseconds(now - *firstDrawn_) : 0,
  };
}

void Slot::park(kv::BlockPool& pool) {
  sequence_ = kv::Sequence(pool);
  parked_ = true;
}

} // namespace mashbox::sched
