#include "sched/scheduler.hpp"

#include "sched/grammar_compiler.hpp"
#include "sched/slot.hpp"
#include "sched/step_plan.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

namespace mashbox::sched {
namespace {

/// How often a request's grammar may be compiled anew because outputs of others have used it up before the request could begin.
constexpr uint32_t mostRenewals = 8;

Error rejected(std::string message, std::string subject) {
  return {ErrorKind::Rejected, std::move(message), std::move(subject)};
}

/// Of a request whose grammar is wrong: the request is.
Error refusal(Error error) {
  if (error.kind == ErrorKind::Invalid || error.kind == ErrorKind::Unsupported) error.kind = ErrorKind::Rejected;
  return error;
}

} // namespace

struct Scheduler::Impl {
  Impl(std::unique_ptr<Decoder> decoder, OnStep onStep);
  ~Impl();

  Result<void> validate(const Request& request) const;
  Result<void> submit(Request request);
  void cancel(uint32_t id);
  Stats stats() const;

private:
  void run();
  bool takeCommands();
  void step();
  void runBatch(std::span<Slot* const> slots, std::span<const model::Segment> segments);
  void relieve();
  void fail(const Slot& slot, const Error& error);
  void remove(uint32_t id);
  void publish();
  BlockUse blockUse() const;

  const std::unique_ptr<Decoder> decoder_;
  const OnStep onStep_;
  const uint32_t vocabularySize_, knownTokens_, contextLength_, slots_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::deque<Arrival> waiting_;
  std::vector<uint32_t> cancelled_;
  std::unordered_set<uint32_t> ids_;
  Stats stats_{};

  // The scheduler thread's own.
  std::vector<std::unique_ptr<Slot>> running_; ///< in the order of admission
  std::vector<Event> events_;
  uint64_t steps_ = 0;

  GrammarCompiler grammars_; ///< its thread looks at what stands above
  std::thread thread_;
};

Scheduler::Impl::Impl(std::unique_ptr<Decoder> decoder, OnStep onStep)
    : decoder_(std::move(decoder)),
      onStep_(std::move(onStep)),
      vocabularySize_(decoder_->vocabularySize()),
      knownTokens_(decoder_->knownTokens()),
      contextLength_(decoder_->contextLength()),
      slots_(std::min(decoder_->slots(), decoder_->batchTokens())),
      grammars_([this]() -> Result<grammar::Tokens> {
        auto texts = decoder_->tokenTexts();
        if (!texts) return std::move(texts).error();
        return grammar::Tokens{*std::move(texts), decoder_->tokenMerges()};
      }, [this] {
        const std::lock_guard lock(mutex_);
        wake_.notify_one();
      }) {
  publish();
  thread_ = std::thread([this] { run(); });
}

Scheduler::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<void> Scheduler::Impl::validate(const Request& request) const {
  if (request.tokens.empty()) return rejected("the prompt is empty", "tokens");
  if (request.tokens.size() >= contextLength_)
    return rejected("a prompt of " + std::to_string(request.tokens.size()) + " tokens leaves no room for output in a context of " +
        std::to_string(contextLength_), "tokens");
  if (request.maxTokens == 0) return rejected("maxTokens is 0", "maxTokens");
  if (request.topLogprobs > sample::MostTopLogprobs)
    return rejected("topLogprobs is more than " + std::to_string(sample::MostTopLogprobs), "topLogprobs");
  const auto unknown = [&](int32_t token) { return static_cast<uint32_t>(token) >= knownTokens_; };
  const auto outside = [&](int32_t token) { return "token " + std::to_string(token) + " is not one of the model's " + std::to_string(knownTokens_); };
  if (request.limit) {
    if (request.limit->end.empty()) return rejected("limit.end is empty", "limit");
    for (const auto* tokens : {&request.limit->begin, &request.limit->end, &request.limit->forced})
      for (const int32_t token : *tokens)
        if (unknown(token))
          return rejected(outside(token), "limit");
  }
  for (const int32_t token : request.tokens)
    if (unknown(token))
      return rejected(outside(token), "tokens");
  for (const auto& [token, bias] : request.sampling.logitBias)
    if (unknown(token))
      return rejected(outside(token), "logitBias");
  return {};
}

Result<void> Scheduler::Impl::submit(Request request) {
  if (auto valid = validate(request); !valid) return valid;
  const std::lock_guard lock(mutex_);
  if (!ids_.insert(request.id).second) return rejected("id " + std::to_string(request.id) + " is in use", "id");
  Arrival arrival{std::move(request), Clock::now()};
  if (!arrival.request.grammar.empty()) arrival.grammar = grammars_.submit(std::move(arrival.request.grammar));
  waiting_.push_back(std::move(arrival));
  wake_.notify_one();
  return {};
}

void Scheduler::Impl::cancel(uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (!ids_.contains(id)) return;
  cancelled_.push_back(id);
  wake_.notify_one();
}

Stats Scheduler::Impl::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.waiting = static_cast<uint32_t>(waiting_.size());
  return stats;
}

void Scheduler::Impl::run() {
  for (;;) {
    try {
      if (!takeCommands()) return;
      step();
    } catch (const std::bad_alloc&) {
      for (const auto& slot : running_) fail(*slot, {ErrorKind::OutOfMemory, "out of memory while running a step", ""});
      running_.clear();
    }
    publish();
    if (!events_.empty()) onStep_(events_, blockUse());
    events_.clear();
  }
}

/// Sleeps until there is work; cancels and admits. False when the scheduler stops.
bool Scheduler::Impl::takeCommands() {
  std::unique_lock lock(mutex_);
  const auto ready = [](const Arrival& arrival) { return arrival.ready(); };
  wake_.wait(lock, [&] { return stopping_ || !running_.empty() || !cancelled_.empty() || std::any_of(waiting_.begin(), waiting_.end(), ready); });
  if (stopping_) return false;

  for (const uint32_t id : std::exchange(cancelled_, {})) {
    const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), [&](const Arrival& a) { return a.request.id == id; });
    if (waiting != waiting_.end()) {
      events_.push_back(waiting->cancelled());
      waiting_.erase(waiting);
      continue;
    }
    const auto running = std::find_if(running_.begin(), running_.end(), [&](const auto& slot) { return slot->id() == id; });
    if (running == running_.end()) continue;
    events_.push_back((*running)->done(FinishReason::Cancelled));
    remove(id);
  }

  const bool parked = std::any_of(running_.begin(), running_.end(), [](const auto& slot) { return slot->parked(); });
  for (auto arrival = waiting_.begin(); arrival != waiting_.end();) {
    const bool failed = arrival->grammar && arrival->ready() && !arrival->grammar->result();
    if (failed) events_.push_back(FailedEvent{arrival->request.id, refusal(arrival->grammar->result().error())});
    else if (parked || running_.size() >= slots_ || !arrival->ready()) {
      ++arrival;
      continue;
    } else if (arrival->grammar && arrival->renewals < mostRenewals && arrival->grammar->worn()) {
      arrival->grammar = grammars_.submit(arrival->grammar->ir());
      ++arrival->renewals;
      continue;
    } else running_.push_back(std::make_unique<Slot>(std::move(*arrival), decoder_->pool(), contextLength_, steps_));
    arrival = waiting_.erase(arrival);
  }
  stats_.running = static_cast<uint32_t>(running_.size());
  return true;
}

void Scheduler::Impl::step() {
  if (running_.empty()) return;
  std::vector<Demand> demands;
  for (const auto& slot : running_) demands.push_back(slot->demand());

  std::vector<Slot*> slots;
  std::vector<model::Segment> segments;
  for (const auto& [index, wanted] : planStep(demands, decoder_->batchTokens())) {
    Slot& slot = *running_[index];
    const uint32_t rows = slot.reserve(wanted);
    if (rows == 0) continue;
    slots.push_back(&slot);
    segments.push_back(slot.segment(rows));
  }
  if (segments.empty()) relieve();
  else runBatch(slots, segments);
}

void Scheduler::Impl::runBatch(std::span<Slot* const> slots, std::span<const model::Segment> segments) {
  ++steps_;
  const auto logits = decoder_->forward(segments);
  if (!logits) {
    for (const Slot* slot : slots) {
      fail(*slot, logits.error());
      remove(slot->id());
    }
    return;
  }
  size_t row = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    const bool wanted = segments[i].logits != model::Logits::None;
    const auto own = wanted ? logits->subspan(row++ * vocabularySize_, vocabularySize_) : std::span<const float>{};
    if (slots[i]->advance(own, steps_, events_)) remove(slots[i]->id());
  }
}

/// Called when no running request could grow: makes room.
void Scheduler::Impl::relieve() {
  const auto growing = std::count_if(running_.begin(), running_.end(), [](const auto& slot) { return !slot->parked(); });
  const auto last = std::find_if(running_.rbegin(), running_.rend(), [](const auto& slot) { return !slot->parked(); });
  if (growing > 1) {
    (*last)->park(decoder_->pool());
    return;
  }
  fail(**last, {ErrorKind::OutOfMemory, "the request needs more than all " + std::to_string(decoder_->pool().totalBlocks()) + " KV blocks", "kv"});
  remove((*last)->id());
}

void Scheduler::Impl::fail(const Slot& slot, const Error& error) { events_.push_back(FailedEvent{slot.id(), error}); }

/// Frees a slot and its blocks; requests that were paused for want of them may go on.
void Scheduler::Impl::remove(uint32_t id) {
  std::erase_if(running_, [&](const auto& slot) { return slot->id() == id; });
  for (const auto& slot : running_) slot->unpark();
}

BlockUse Scheduler::Impl::blockUse() const {
  kv::BlockPool& pool = decoder_->pool();
  BlockUse out{pool.totalBlocks() - pool.freeBlocks(), pool.totalBlocks()};
  if (const kv::WindowPool* windows = pool.windows()) {
    out.windowUsed = windows->totalBlocks() - windows->freeBlocks();
    out.windowTotal = windows->totalBlocks();
  }
  return out;
}

void Scheduler::Impl::publish() {
  const std::lock_guard lock(mutex_);
  for (const auto& event : events_) {
    const bool last = std::holds_alternative<DoneEvent>(event) || std::holds_alternative<FailedEvent>(event);
    if (!last) continue;
    const uint32_t id = std::visit([](const auto& e) { return e.id; }, event);
    ids_.erase(id);
    std::erase(cancelled_, id);
  }
  stats_.running = static_cast<uint32_t>(running_.size());
  stats_.blocks = blockUse();
  stats_.steps = steps_;
}

Scheduler::Scheduler(std::unique_ptr<Decoder> decoder, OnStep onStep)
    : impl_(std::make_unique<Impl>(std::move(decoder), std::move(onStep))) {}
Scheduler::~Scheduler() = default;
Result<void> Scheduler::submit(Request request) { return impl_->submit(std::move(request)); }
void Scheduler::cancel(uint32_t id) { impl_->cancel(id); }
Stats Scheduler::stats() const { return impl_->stats(); }

} // namespace mashbox::sched
