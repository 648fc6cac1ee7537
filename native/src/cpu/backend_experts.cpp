#include "cpu/backend_experts.hpp"

#include <algorithm>
#include <cmath>

namespace mashbox::cpu {
namespace {

using model::Activation;

/// Hidden values are handed out in units of the 8-bit block, so that who computes them can also quantize them.
constexpr size_t HiddenUnit = 32, OutputUnit = 16;
/// Outputs of one expert pass through a tile of this width before they are added up.
constexpr size_t TileWidth = 256;
/// Weight bytes that are worth another thread's attention.
constexpr size_t GrainBytes = 16384;
/// From so many rows on, kernels first lay out the activations, which pays off over many outputs per call.
constexpr size_t LayoutRows = 8;

size_t unitsOf(size_t count, size_t unit) { return (count + unit - 1) / unit; }

Result<void> reserve(Region& region, uint64_t bytes) {
  auto reserved = Region::reserve(bytes, "scratch memory of the experts");
  if (!reserved) return reserved.error();
  region = std::move(*reserved);
  return {};
}

bool wantsFloats(const GatedExperts& stack) { return !usesInt8(stack.gate.type) || !usesInt8(stack.up.type); }
bool wantsInt8(const GatedExperts& stack) { return usesInt8(stack.gate.type) || usesInt8(stack.up.type); }

Activations rowsOf(const Activations& x, size_t first, size_t rows) {
  Activations out = x;
  out.rows = rows;
  out.f32 += first * x.length;
  if (!x.q) return out;
  out.q += first * x.length;
  out.scale += first * (x.length / 32);
  out.sum16 += first * (x.length / 16);
  return out;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

/// out = activation(out, up)
void activate(Activation activation, const Kernels& kernels, float* out, float* up, size_t count) {
  switch (activation) {
  case Activation::Silu: return kernels.siluMul(out, up, out, count);
  case Activation::Gelu: return kernels.geluMul(out, up, out, count);
  case Activation::Swiglu: {
    // g · sigmoid(a g) · (u + 1) = silu(a g) · (u + 1) / a
    constexpr float Limit = 7, Slope = 1.702f;
    for (size_t i = 0; i < count; ++i) {
      out[i] = Slope * std::min(out[i], Limit);
      up[i] = (std::clamp(up[i], -Limit, Limit) + 1) / Slope;
    }
    return kernels.siluMul(out, up, out, count);
  }
  }
}

} // namespace

Result<ExpertRows> ExpertRows::create(uint64_t values) {
  ExpertRows out;
  if (auto done = reserve(out.values_, values * sizeof(float)); !done) return done.error();
  if (auto done = reserve(out.q_, values); !done) return done.error();
  if (auto done = reserve(out.scale_, values / 32 * sizeof(float)); !done) return done.error();
  if (auto done = reserve(out.sum16_, values / 16 * sizeof(int16_t)); !done) return done.error();
  return out;
}

void ExpertRows::copy(const Activations& x, size_t from, size_t to, bool floats, bool int8) {
  const size_t length = x.length;
  if (floats) std::copy_n(x.f32 + from * length, length, values() + to * length);
  if (!int8) return;
  std::copy_n(x.q + from * length, length, q_.as<int8_t>() + to * length);
  std::copy_n(x.scale + from * (length / 32), length / 32, scale_.as<float>() + to * (length / 32));
  std::copy_n(x.sum16 + from * (length / 16), length / 16, sum16_.as<int16_t>() + to * (length / 16));
}

void ExpertRows::quantize(const Kernels& kernels, size_t row, size_t length, size_t from, size_t to) {
  const size_t at = row * length + from;
  kernels.quantizeRow(values() + at, to - from, q_.as<int8_t>() + at, scale_.as<float>() + at / 32, sum16_.as<int16_t>() + at / 16);
}

Activations ExpertRows::view(size_t first, size_t rows, size_t length) const {
  const Activations all{0, length, values(), q_.as<int8_t>(), scale_.as<float>(), sum16_.as<int16_t>()};
  return rowsOf(all, first, rows);
}

Result<ExpertRunner> ExpertRunner::create(const ExpertCapacity& capacity, const Kernels& kernels, ThreadPool& pool) {
  ExpertRunner out(capacity, kernels, pool);
  const uint64_t rows = capacity.batchRows, pairs = rows * capacity.used;
  const std::pair<ExpertRows*, uint64_t> scratch[] = {
      {&out.gathered_, pairs * capacity.width}, {&out.hidden_, pairs * capacity.feedForward}, {&out.sharedHidden_, rows * capacity.sharedFeedForward}};
  for (const auto& [member, values] : scratch) {
    auto created = ExpertRows::create(values);
    if (!created) return created.error();
    *member = std::move(*created);
  }
  if (auto done = reserve(out.up_, pairs * capacity.feedForward * sizeof(float)); !done) return done.error();
  if (auto done = reserve(out.sharedUp_, rows * capacity.sharedFeedForward * sizeof(float)); !done) return done.error();
  if (auto done = reserve(out.tiles_, rows * TileWidth * pool.size() * sizeof(float)); !done) return done.error();
  out.choices_.resize(pairs);
  return out;
}

void ExpertRunner::run(const ExpertLayer& layer, uint32_t rows, float* logits, const float* sharedGate, Rows& in, Rows& out, bool add) {
  route(layer, rows, logits);
  plan(layer, rows, in);

  // The shared expert's units follow those of all groups.
  const size_t groups = groups_.groups().size();
  const size_t units = unitsOf(layer.routed.gate.rows, HiddenUnit), routedUnits = groups * units;
  const size_t sharedUnits = layer.shared.present() ? unitsOf(layer.shared.gate.rows, HiddenUnit) : 0;
  const size_t hiddenBytes = HiddenUnit * (layer.routed.gate.rowBytes + layer.routed.up.rowBytes);
  pool_->parallelFor(routedUnits + sharedUnits, std::min(units, grain(routedUnits + sharedUnits, hiddenBytes, rows)), [&](size_t begin, size_t end, unsigned) {
    while (begin < end) {
      const size_t group = std::min(begin / units, groups), first = group * units;
      const size_t last = std::min(end, group < groups ? first + units : routedUnits + sharedUnits);
      gated(tasks_[group], (begin - first) * HiddenUnit, std::min((last - first) * HiddenUnit, tasks_[group].stack->gate.rows));
      begin = last;
    }
  });

  const size_t width = layer.routed.down.rows, outputUnits = unitsOf(width, OutputUnit);
  float* const to = out.write(width);
  const size_t outputBytes = OutputUnit * layer.routed.down.rowBytes * tasks_.size();
  pool_->parallelFor(outputUnits, grain(outputUnits, outputBytes, rows), [&](size_t begin, size_t end, unsigned worker) {
    float* const tile = tiles_.as<float>() + worker * capacity_.batchRows * TileWidth;
    for (size_t from = begin * OutputUnit; from < std::min(end * OutputUnit, width); from += TileWidth)
      down(rows, sharedGate, to, from, std::min({from + TileWidth, end * OutputUnit, width}), add, tile);
  });
}

void ExpertRunner::route(const ExpertLayer& layer, uint32_t rows, float* logits) {
  const RouterRule& rule = layer.rule;
  forRows(*pool_, rows, rule.experts, [&](size_t row) { chooseExperts(rule, *kernels_, logits + row * rule.experts, choices_.data() + row * rule.used); });
  groups_.assign({choices_.data(), size_t{rows} * rule.used}, rule.used, rule.experts);
}

/// Brings every expert's rows side by side, where they are not yet.
void ExpertRunner::plan(const ExpertLayer& layer, uint32_t rows, Rows& in) {
  const bool int8 = wantsInt8(layer.routed);
  const Activations x = in.activations(rows, int8 || (layer.shared.present() && wantsInt8(layer.shared)), *kernels_, *pool_);
  tasks_.clear();
  bool scattered = false;
  for (const ExpertGroups::Group& group : groups_.groups()) {
    const uint32_t first = groups_.row(group.begin);
    const bool adjacent = groups_.row(group.end - 1) - first + 1 == group.size();
    scattered = scattered || !adjacent;
    const Activations rowsOfExpert = adjacent ? rowsOf(x, first, group.size()) : gathered_.view(group.begin, group.size(), x.length);
    tasks_.push_back({&layer.routed, group.expert, rowsOfExpert, &hidden_, up_.as<float>(), group.begin});
  }
  if (layer.shared.present()) tasks_.push_back({&layer.shared, 0, x, &sharedHidden_, sharedUp_.as<float>(), 0});
  if (!scattered) return;
  const bool floats = wantsFloats(layer.routed);
  forRows(*pool_, groups_.pairs(), x.length, [&](size_t pair) { gathered_.copy(x, groups_.row(pair), pair, floats, int8); });
}

/// Hidden values [from, to) of an expert's rows.
void ExpertRunner::gated(const Task& task, size_t from, size_t to) const {
  const GatedExperts& stack = *task.stack;
  const size_t length = stack.gate.rows;
  float* const hidden = task.hidden->values() + task.firstHidden * length + from;
  float* const up = task.up + task.firstHidden * length + from;
  multiply(stack.gate, task.expert, task.x, from, to, hidden, length);
  multiply(stack.up, task.expert, task.x, from, to, up, length);
  const bool int8 = usesInt8(stack.down.type);
  for (size_t row = 0; row < task.x.rows; ++row) {
    activate(stack.activation, *kernels_, hidden + row * length, up + row * length, to - from);
    if (int8) task.hidden->quantize(*kernels_, task.firstHidden + row, length, from, to);
  }
}

/// Outputs [from, to) of every row.
void ExpertRunner::down(uint32_t rows, const float* sharedGate, float* out, size_t from, size_t to, bool add, float* tile) const {
  const size_t width = tasks_.front().stack->down.rows, count = to - from, groups = groups_.groups().size();
  if (!add)
    for (uint32_t row = 0; row < rows; ++row) std::fill_n(out + row * width + from, count, 0.0f);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const Task& task = tasks_[i];
    const GatedExperts& stack = *task.stack;
    multiply(stack.down, task.expert, task.hidden->view(task.firstHidden, task.x.rows, stack.gate.rows), from, to, tile, count);
    for (size_t row = 0; row < task.x.rows; ++row) {
      const size_t pair = task.firstHidden + row;
      const bool routed = i < groups;
      const float weight = routed ? groups_.weight(pair) : sharedGate ? sigmoid(sharedGate[row]) : 1;
      kernels_->axpyF32(weight, tile + row * count, out + (routed ? groups_.row(pair) : row) * width + from, count);
    }
  }
}

void ExpertRunner::multiply(const ExpertMatrices& matrices, size_t expert, const Activations& x, size_t from, size_t to, float* out, size_t stride) const {
  const std::byte* const rows = matrices.experts[expert] + (matrices.firstRow + from) * matrices.rowBytes;
  kernels_->matmulRows(matrices.type, rows, matrices.rowBytes, to - from, x, out, stride);
  const float scale = matrices.scale ? matrices.scale[expert] : 1;
  const float* const bias = matrices.bias ? matrices.bias + expert * matrices.biasStride + from : nullptr;
  if (!bias && scale == 1) return;
  for (size_t row = 0; row < x.rows; ++row)
    for (size_t i = 0; i < to - from; ++i) {
      float& value = out[row * stride + i];
      value = value * scale + (bias ? bias[i] : 0);
    }
}

/// Units of one piece of work.
size_t ExpertRunner::grain(size_t units, size_t unitBytes, uint32_t rows) const {
  constexpr size_t PiecesPerThread = 4;
  if (rows >= LayoutRows) return std::max<size_t>(1, units / (PiecesPerThread * pool_->size()));
  return std::max<size_t>(1, GrainBytes / unitBytes);
}

} // namespace mashbox::cpu
