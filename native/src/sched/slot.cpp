#include "sched/slot.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::sched {
namespace {

std::optional<Constraint> constraintOf(const Arrival& arrival) {
  if (!arrival.grammar) return std::nullopt;
  // A token that was not drawn has no log probability of its own.
  return Constraint(grammar::Matcher(*arrival.grammar->result()), arrival.request.jumpAhead && !arrival.request.topLogprobs);
}

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
      constraint_(constraintOf(arrival)),
      greedySyntax_(arrival.request.greedySyntax),
      sequence_(pool),
      lastServed_(step),
      submitted_(arrival.submitted),
      admitted_(Clock::now()) {}

Demand Slot::demand() const {
  const auto rows = static_cast<uint32_t>(history_.size()) - sequence_.length();
  return {.rows = parked_ ? 0 : rows, .decoding = rows == 1 && generated() > 0, .lastServed = lastServed_};
}

uint32_t Slot::reserve(uint32_t rows) {
  rows = std::min(rows, sequence_.room());
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

  if (!firstDrawn_) firstDrawn_ = Clock::now();
  const uint32_t before = generated();
  if (before == 0 && takeAhead(events)) return true;
  return generated() == before && draw(logits, events);
}

bool Slot::draw(std::span<const float> logits, std::vector<Event>& events) {
  std::span<const int32_t> tooEarly;
  if (generated() < minTokens_) tooEarly = stopTokens_;
  if (constraint_) {
    const auto restricted = constraint_->restrict(logits, stopTokens_, tooEarly);
    if (!restricted) {
      events.push_back(FailedEvent{id_, restricted.error()});
      return true;
    }
    if (restricted->empty()) {
      events.push_back(done(FinishReason::Stop));
      return true;
    }
    logits = *restricted;
    tooEarly = {};
  }

  auto forced = passage_.forced();
  const bool wanted = forced.has_value();
  // What ends a passage waits until the grammar lets it through, for example for the rest of a character.
  if (forced && constraint_ && constraint_->allowed(*forced) != *forced) forced.reset();
  const auto choice = greedySyntax_ && constraint_ && constraint_->syntactic() ? sample::Choice::Best : sample::Choice::Drawn;
  int32_t token = forced ? *forced : sampler_.sample(logits, history_, generated(), tooEarly, choice);
  if (constraint_) token = constraint_->allowed(token);
  if (!forced && std::find(stopTokens_.begin(), stopTokens_.end(), token) != stopTokens_.end()) {
    events.push_back(StopTokenEvent{id_, token});
    events.push_back(done(FinishReason::Stop));
    return true;
  }
  if (constraint_ && !constraint_->accept(token)) {
    events.push_back(FailedEvent{id_, {ErrorKind::TooComplex, "the grammar has used up what it may cost", "grammar"}});
    return true;
  }
  if (forced || !wanted) passage_.take(token);
  return take(token, logits, events) || takeAhead(events);
}

bool Slot::take(int32_t token, std::span<const float> logits, std::vector<Event>& events) {
  if (topLogprobs_) {
    auto logprobs = logprobs_.read(logits, token, *topLogprobs_);
    // A grammar may leave fewer tokens than were asked for.
    if (constraint_) std::erase_if(logprobs.top, [](const sample::Candidate& candidate) { return !(candidate.score > sample::LeastLogprob); });
    events.push_back(ScoredTokenEvent{id_, token, std::move(logprobs)});
  } else {
    events.push_back(TokenEvent{id_, token});
  }
  history_.push_back(token);
  if (history_.size() < longest_) return false;
  events.push_back(done(FinishReason::Length));
  return true;
}

/// Tokens that need no logits. They are run together with the next step's row.
bool Slot::takeAhead(std::vector<Event>& events) {
  if (!constraint_ || passage_.forced()) return false;
  for (const int32_t token : constraint_->ahead()) {
    passage_.take(token);
    if (take(token, {}, events)) return true;
  }
  return false;
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
