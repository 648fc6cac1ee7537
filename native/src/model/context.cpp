#include "model/forward.hpp"
#include "model/memory.hpp"
#include "model/model_impl.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace mashbox::model {
namespace {

Error rejected(const std::string& subject, const std::string& message) { return Error{ErrorKind::Rejected, subject + ": " + message, subject}; }

Result<void> checkOptions(const Config& config, const ContextOptions& options) {
  if (options.slots == 0) return rejected("slots", "at least 1 is needed");
  if (options.batchTokens == 0) return rejected("batchTokens", "at least 1 is needed");
  if (options.contextLength > config.contextLength)
    return rejected("ctx", std::to_string(options.contextLength) + " is more than the " + std::to_string(config.contextLength) + " tokens that the model was made for");
  return {};
}

} // namespace

struct Context::Impl {
  Impl(std::shared_ptr<const Model> model, const ContextOptions& options, uint32_t contextLength, kv::BlockPool pool,
       std::unique_ptr<Backend> backend, Forward forward)
      : model(std::move(model)), slots(options.slots), contextLength(contextLength), batchTokens(options.batchTokens), pool(std::move(pool)),
        backend(std::move(backend)), forward(std::move(forward)) {}

  Result<void> check(std::span<const Segment> segments) const;
  Result<void> reserve(std::span<const Segment> segments);
  /// Segments as the rows of one batch.
  void layOut(std::span<const Segment> segments);

  std::shared_ptr<const Model> model;
  uint32_t slots, contextLength, batchTokens;
  kv::BlockPool pool;
  std::unique_ptr<Backend> backend;
  Forward forward;

  std::vector<int32_t> tokens;
  std::vector<RowRange> ranges;
  std::vector<uint32_t> wanted;
};

Context::Context(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Context::~Context() = default;
const Model& Context::model() const { return *impl_->model; }
uint32_t Context::contextLength() const { return impl_->contextLength; }
uint32_t Context::slots() const { return impl_->slots; }
kv::BlockPool& Context::pool() { return impl_->pool; }

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Model> model, const ContextOptions& options) {
  const Model::Impl& loaded = *model->impl_;
  if (auto checked = checkOptions(loaded.config, options); !checked) return checked.error();
  const MemoryPlan plan = model->plan(options);
  if (!fits(plan)) return doesNotFit(plan, options);

  const BackendShape shape = loaded.shape(options, plan.contextLength);
  auto backend = loaded.device->open(shape);
  if (!backend) return backend.error();
  auto forward = Forward::create(loaded.config, loaded.weights, **backend);
  if (!forward) return forward.error();
  std::optional<kv::WindowPool> windows;
  if (const uint32_t window = loaded.config.window()) windows.emplace(shape.windowBlocks, window);
  std::optional<kv::StatePool> states;
  if (loaded.config.recurrent()) states.emplace(options.slots, options.snapshots);
  kv::BlockPool pool(shape.blocks, std::move(windows), std::move(states));
  auto impl = std::make_unique<Impl>(std::move(model), options, plan.contextLength, std::move(pool), std::move(*backend), std::move(*forward));
  return std::unique_ptr<Context>(new Context(std::move(impl)));
}

Result<std::span<const float>> Context::forward(std::span<const Segment> segments) {
  if (auto checked = impl_->check(segments); !checked) return checked.error();
  if (auto reserved = impl_->reserve(segments); !reserved) return reserved.error();
  impl_->layOut(segments);
  auto logits = impl_->forward.run({impl_->tokens, impl_->ranges}, impl_->wanted);
  if (!logits) {
    for (const Segment& segment : segments) segment.sequence->spoil();
    return logits.error();
  }
  for (const Segment& segment : segments) segment.sequence->advance(static_cast<uint32_t>(segment.tokens.size()));
  return logits;
}

std::vector<std::byte> Context::saveState(const kv::Snapshot& snapshot) const { return impl_->backend->saveState(snapshot.state(), snapshot.length()); }

Result<kv::Snapshot> Context::loadState(std::span<const std::byte> bytes) {
  kv::StatePool* const states = impl_->pool.states();
  if (!states) return rejected("state", "the model has no recurrent layers");
  const auto id = states->acquire();
  if (!id) return id.error();
  const kv::StateHandle handle(*states, *id);
  const auto length = impl_->backend->loadState(bytes, *id);
  if (!length) return length.error();
  return states->snapshot(*id, *length);
}

Result<void> Context::Impl::check(std::span<const Segment> segments) const {
  const auto known = static_cast<int32_t>(model->config().tokens);
  size_t rows = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const Segment& segment = segments[i];
    if (segment.tokens.empty()) return rejected("tokens", "a segment without tokens");
    rows += segment.tokens.size();
    const kv::Sequence& sequence = *segment.sequence;
    if (segment.tokens.size() > contextLength - std::min(contextLength, sequence.length()))
      return rejected("tokens", std::to_string(sequence.length() + segment.tokens.size()) + " tokens are more than the context of " + std::to_string(contextLength));
    if (std::any_of(segment.tokens.begin(), segment.tokens.end(), [&](int32_t token) { return token < 0 || token >= known; }))
      return rejected("tokens", "a token is not one of " + std::to_string(known));
    if (std::any_of(segments.begin(), segments.begin() + i, [&](const Segment& other) { return other.sequence == segment.sequence; }))
      return rejected("tokens", "a sequence stands in the batch twice");
    if (sequence.endsShared()) return rejected("tokens", "the next block is shared with another sequence");
  }
  if (rows == 0 || rows > batchTokens) return rejected("tokens", std::to_string(rows) + " rows do not make a batch of 1 to " + std::to_string(batchTokens));
  return {};
}

Result<void> Context::Impl::reserve(std::span<const Segment> segments) {
  for (const Segment& segment : segments)
    if (auto reserved = segment.sequence->reserve(static_cast<uint32_t>(segment.tokens.size())); !reserved) return reserved.error();
  return {};
}

void Context::Impl::layOut(std::span<const Segment> segments) {
  tokens.clear();
  ranges.clear();
  wanted.clear();
  for (const Segment& segment : segments) {
    const auto first = static_cast<uint32_t>(tokens.size()), rows = static_cast<uint32_t>(segment.tokens.size());
    tokens.insert(tokens.end(), segment.tokens.begin(), segment.tokens.end());
    RowRange range{first, rows, segment.sequence->length(), segment.sequence->blocks()};
    if (const kv::SequenceState* state = segment.sequence->state()) {
      range.state = state->id();
      range.stateSource = state->source();
    }
    if (const kv::WindowBlocks* window = segment.sequence->window()) range.window = {window->first(), window->blocks()};
    ranges.push_back(range);
    if (segment.logits == Logits::Last) wanted.push_back(first + rows - 1);
    for (uint32_t i = 0; segment.logits == Logits::All && i < rows; ++i) wanted.push_back(first + i);
  }
}

} // namespace mashbox::model
