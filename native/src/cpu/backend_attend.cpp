#include "cpu/backend_attend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mashbox::cpu {
namespace {

using model::OutputGate;

constexpr uint32_t SpanTokens = 512, SpanBlocks = SpanTokens / kv::BlockTokens;
constexpr uint32_t TaskQueries = 24; ///< of one task: their sums stay in the first-level cache
constexpr float Lowest = -std::numeric_limits<float>::infinity();

uint32_t spansOf(uint32_t tokens) { return (tokens + SpanTokens - 1) / SpanTokens; }
/// The first position that `position` sees.
uint32_t firstSeen(uint32_t position, uint32_t window) { return window == 0 || position < window ? 0 : position - window + 1; }

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

} // namespace

std::vector<KvCache::Layer> Attender::cacheLayers(const model::BackendShape& shape, bool windows) {
  std::vector<KvCache::Layer> out;
  for (const model::LayerConfig& layer : shape.layers)
    if (const auto& a = layer.attention; a && a->ownsCache() && (a->window > 0) == windows) out.push_back({a->kvHeads, a->keyLength, a->valueLength});
  return out;
}

Attender::Attender(const model::BackendShape& shape, KvCache cache, KvCache windows, const Kernels& kernels, ThreadPool& pool)
    : tables_{Table{std::move(cache), {}, {}}, Table{std::move(windows), {}, {}}}, kernels_(kernels),
      attention_(attentionKernels(kernels.isa, shape.kvType == model::KvType::F16)), pool_(pool), rotations_(shape.rotations), scratch_(pool.size()) {
  std::array<uint32_t, 2> caches{};
  for (const model::LayerConfig& layer : shape.layers) {
    layers_.push_back({});
    if (!layer.attention) continue;
    const model::Attention& attention = *layer.attention;
    const bool window = attention.window > 0;
    layers_.back() = {attention, planOf(attention), window, attention.ownsCache() ? caches[window]++ : layers_[*attention.cacheOf].cache};
    ones_.resize(std::max<size_t>(ones_.size(), attention.valueLength), 1);
  }
  size_t queries = 0, floats = 0;
  for (const Plan& plan : plans_) {
    queries = std::max(queries, size_t{plan.taskRows} * plan.group);
    floats = std::max(floats, plan.partialFloats(size_t{plan.taskRows} * plan.group));
  }
  for (Scratch& scratch : scratch_) {
    scratch.queries.resize(queries);
    scratch.sums.resize(queries);
    scratch.scores.resize(queries * kv::BlockTokens);
    scratch.result.resize(floats);
    scratch.span.resize(floats);
  }
}

uint32_t Attender::planOf(const model::Attention& a) {
  const auto same = [&](const Plan& plan) {
    return plan.heads == a.heads && plan.kvHeads == a.kvHeads && plan.keyLength == a.keyLength && plan.valueLength == a.valueLength && plan.window == a.window;
  };
  const auto found = std::find_if(plans_.begin(), plans_.end(), same);
  if (found != plans_.end()) return static_cast<uint32_t>(found - plans_.begin());
  const uint32_t group = a.heads / a.kvHeads;
  const KvCache::Layer cached{a.kvHeads, a.keyLength, a.valueLength};
  plans_.push_back({a.heads, a.kvHeads, a.keyLength, a.valueLength, a.window, group, cached.valueStride(), std::max(1u, TaskQueries / group), false, {}});
  return static_cast<uint32_t>(plans_.size() - 1);
}

void Attender::begin(std::span<const model::RowRange> ranges) {
  ranges_.clear();
  positions_.clear();
  for (Table& table : tables_) {
    table.blocks.clear();
    table.rows.clear();
  }
  singleRows_ = true;
  for (const model::RowRange& range : ranges) {
    ranges_.push_back({range.firstRow, range.rows, range.position, {}});
    const model::BlockTable given[] = {{0, range.blocks}, range.window};
    for (size_t t = 0; t < tables_.size(); ++t) {
      Table& table = tables_[t];
      ranges_.back().origin[t] = table.blocks.size() - given[t].first;
      table.blocks.insert(table.blocks.end(), given[t].blocks.begin(), given[t].blocks.end());
      for (uint32_t i = 0; i < range.rows && !given[t].blocks.empty(); ++i)
        table.rows.push_back(given[t].blocks[(range.position + i) / kv::BlockTokens - given[t].first]);
    }
    singleRows_ = singleRows_ && range.rows == 1;
    for (uint32_t i = 0; i < range.rows; ++i) positions_.push_back(range.position + i);
  }
  rotations_.begin(positions_, pool_);
  for (Plan& plan : plans_) planTasks(plan);
}

void Attender::planTasks(Plan& plan) {
  plan.tasks.clear();
  for (uint32_t r = 0; r < ranges_.size(); ++r)
    for (uint32_t row = 0; row < ranges_[r].rows; row += plan.taskRows)
      for (uint32_t head = 0; head < plan.kvHeads; ++head) {
        const uint32_t rows = std::min(plan.taskRows, ranges_[r].rows - row), position = ranges_[r].position + row;
        plan.tasks.push_back({r, head, row, rows, firstSeen(position, plan.window) / SpanTokens, spansOf(position + rows), 0, false});
      }

  // Too few tasks to keep every thread busy: share out the spans, too.
  const bool several = std::any_of(plan.tasks.begin(), plan.tasks.end(), [](const Task& task) { return task.endSpan > task.firstSpan + 1; });
  plan.splitSpans = several && pool_.size() > 1 && plan.tasks.size() < 4 * pool_.size();
  if (!plan.splitSpans) return;
  std::vector<Task> split;
  size_t floats = 0;
  for (const Task& task : plan.tasks)
    for (uint32_t span = task.firstSpan; span < task.endSpan; ++span) {
      split.push_back({task.range, task.kvHead, task.row, task.rows, span, span + 1, floats, span > task.firstSpan});
      floats += plan.partialFloats(size_t{task.rows} * plan.group);
    }
  plan.tasks = std::move(split);
  partials_.resize(std::max(partials_.size(), floats));
}

void Attender::run(const AttendRows& rows) {
  const Layer& layer = layers_[rows.layer];
  const Plan& plan = plans_[layer.plan];
  const Job job{rows, layer.attention, plan, tables_[layer.window], layer.cache};
  const bool fused = singleRows_ && !plan.splitSpans;
  if (!fused) {
    constexpr size_t GrainHeads = 8;
    pool_.parallelFor(positions_.size() * plan.kvHeads, GrainHeads, [&](size_t begin, size_t end, unsigned) {
      for (size_t i = begin; i < end; ++i) prepare(job, static_cast<uint32_t>(i / plan.kvHeads), static_cast<uint32_t>(i % plan.kvHeads));
    });
  }
  pool_.parallelFor(plan.tasks.size(), 1, [&](size_t begin, size_t end, unsigned worker) {
    for (size_t i = begin; i < end; ++i) {
      const Task& task = plan.tasks[i];
      if (fused) prepare(job, ranges_[task.range].firstRow, task.kvHead);
      const Partial result =
          partialAt(plan.splitSpans ? partials_.data() + task.partial : scratch_[worker].result.data(), size_t{task.rows} * plan.group);
      attend(job, task, scratch_[worker], result);
      if (!plan.splitSpans) finish(job, task, result);
    }
  });
  if (plan.splitSpans) mergeSpans(job);
}

void Attender::mergeSpans(const Job& job) {
  const std::vector<Task>& tasks = job.plan.tasks;
  for (size_t first = 0, i = 1; first < tasks.size(); ++i) {
    const size_t queries = size_t{tasks[first].rows} * job.plan.group;
    const Partial result = partialAt(partials_.data() + tasks[first].partial, queries);
    if (i < tasks.size() && tasks[i].continues) {
      merge(job.plan, result, partialAt(partials_.data() + tasks[i].partial, queries), queries);
    } else {
      finish(job, tasks[first], result);
      first = i;
    }
  }
}

void Attender::prepare(const Job& job, uint32_t row, uint32_t kvHead) {
  const auto& [rows, attention, plan, table, cache] = job;
  const auto turn = [&](float* head, const float* norm) {
    if (norm) kernels_.rmsNorm(head, norm, rows.epsilon, head, plan.keyLength);
    if (attention.rope) rotations_.turn(*attention.rope, row, head);
  };
  const size_t stride = attention.queryRows();
  float* query = rows.query + (size_t{row} * plan.heads + size_t{kvHead} * plan.group) * stride;
  for (uint32_t i = 0; i < plan.group; ++i) turn(query + i * stride, rows.queryNorm);
  if (!attention.ownsCache()) return;

  float* const key = rows.key + (size_t{row} * plan.kvHeads + kvHead) * plan.keyLength;
  float* const value = rows.value + (size_t{row} * plan.kvHeads + kvHead) * plan.valueLength;
  if (attention.valueIsKey) std::copy_n(key, plan.valueLength, value);
  if (attention.valueNorm) kernels_.rmsNorm(value, ones_.data(), rows.epsilon, value, plan.valueLength);
  turn(key, rows.keyNorm);
  table.cache.write(table.rows[row], cache, kvHead, positions_[row] % kv::BlockTokens, key, value);
}

void Attender::attend(const Job& job, const Task& task, Scratch& scratch, Partial result) {
  const Plan& plan = job.plan;
  const size_t queries = size_t{task.rows} * plan.group, stride = job.attention.queryRows();
  const uint32_t firstRow = ranges_[task.range].firstRow + task.row;
  for (size_t i = 0; i < queries; ++i)
    scratch.queries[i] = job.rows.query + ((firstRow + i / plan.group) * plan.heads + task.kvHead * plan.group + i % plan.group) * stride;
  attendSpan(job, task, task.firstSpan, scratch, result);
  for (uint32_t span = task.firstSpan + 1; span < task.endSpan; ++span) {
    const Partial part = partialAt(scratch.span.data(), queries);
    attendSpan(job, task, span, scratch, part);
    merge(plan, result, part, queries);
  }
}

void Attender::attendSpan(const Job& job, const Task& task, uint32_t span, Scratch& scratch, Partial result) {
  const Plan& plan = job.plan;
  const size_t queries = size_t{task.rows} * plan.group;
  std::fill_n(result.max, queries, Lowest);
  std::fill_n(result.sum, queries, 0.0f);
  std::fill_n(result.values, queries * plan.valueStride, 0.0f);
  for (size_t i = 0; i < queries; ++i) scratch.sums[i] = result.values + i * plan.valueStride;

  const Range& range = ranges_[task.range];
  const uint32_t position = range.position + task.row; // of the task's first row
  const uint32_t endBlock = std::min((span + 1) * SpanBlocks, (position + task.rows + kv::BlockTokens - 1) / kv::BlockTokens);
  for (uint32_t b = std::max(span * SpanBlocks, firstSeen(position, plan.window) / kv::BlockTokens); b < endBlock; ++b) {
    const kv::BlockId block = job.table.blocks[range.origin[job.attention.window > 0] + b];
    const uint32_t token = b * kv::BlockTokens, last = token + kv::BlockTokens - 1;
    // Rows [sees, seesNone) see some of the block's tokens, rows [seesAll, seesPart) see all of them.
    const auto rowAt = [&](uint64_t at) { return at > position ? static_cast<uint32_t>(std::min<uint64_t>(task.rows, at - position)) : 0; };
    const uint64_t window = plan.window;
    const uint32_t sees = rowAt(token), seesAll = rowAt(last);
    const uint32_t seesPart = window ? std::max(seesAll, rowAt(token + window)) : task.rows, seesNone = window ? rowAt(last + window) : task.rows;
    const auto addRow = [&](uint32_t row) {
      const uint32_t at = position + row, first = firstSeen(at, plan.window);
      addBlock(job, task.kvHead, block, size_t{row} * plan.group, plan.group, first > token ? first - token : 0,
               std::min(kv::BlockTokens, at - token + 1), scratch, result);
    };
    for (uint32_t row = sees; row < seesAll; ++row) addRow(row);
    if (seesAll < seesPart)
      addBlock(job, task.kvHead, block, size_t{seesAll} * plan.group, size_t{seesPart - seesAll} * plan.group, 0, kv::BlockTokens, scratch, result);
    for (uint32_t row = seesPart; row < seesNone; ++row) addRow(row);
  }
}

/// Queries [first, first + count) see the block's tokens [from, tokens).
void Attender::addBlock(const Job& job, uint32_t kvHead, kv::BlockId block, size_t first, size_t count, size_t from, size_t tokens, Scratch& scratch,
                        Partial result) {
  const Plan& plan = job.plan;
  float* const scores = scratch.scores.data();
  float scale = job.attention.scale;
  attention_.scores(scratch.queries.data() + first, count, job.keys(block, kvHead), plan.keyLength, scores);
  if (const float cap = job.attention.scoreSoftcap; cap != 0) {
    for (size_t i = 0; i < count * kv::BlockTokens; ++i) scores[i] *= scale;
    kernels_.softcap(scores, cap, count * kv::BlockTokens);
    scale = 1;
  }
  for (size_t i = 0; i < count; ++i) {
    const size_t q = first + i;
    const float before = result.max[q];
    const float sum = attention_.weigh(scores + i * kv::BlockTokens, from, tokens, scale, &result.max[q]);
    if (result.max[q] != before) {
      const float shrink = std::exp(before - result.max[q]);
      result.sum[q] *= shrink;
      for (uint32_t v = 0; v < plan.valueStride; ++v) scratch.sums[q][v] *= shrink;
    }
    result.sum[q] += sum;
  }
  attention_.accumulate(scores, count, tokens, job.values(block, kvHead), plan.valueStride, scratch.sums.data() + first);
}

void Attender::merge(const Plan& plan, Partial into, Partial from, size_t queries) const {
  for (size_t q = 0; q < queries; ++q) {
    if (from.max[q] == Lowest) continue;
    float* values = into.values + q * plan.valueStride;
    const float* more = from.values + q * plan.valueStride;
    if (into.max[q] == Lowest) {
      into.max[q] = from.max[q];
      into.sum[q] = from.sum[q];
      std::copy_n(more, plan.valueStride, values);
      continue;
    }
    const float max = std::max(into.max[q], from.max[q]);
    const float a = std::exp(into.max[q] - max), b = std::exp(from.max[q] - max);
    into.max[q] = max;
    into.sum[q] = into.sum[q] * a + from.sum[q] * b;
    for (uint32_t v = 0; v < plan.valueStride; ++v) values[v] = values[v] * a + more[v] * b;
  }
}

void Attender::finish(const Job& job, const Task& task, Partial result) const {
  const Plan& plan = job.plan;
  const uint32_t firstRow = ranges_[task.range].firstRow + task.row;
  for (size_t q = 0; q < size_t{task.rows} * plan.group; ++q) {
    const size_t row = firstRow + q / plan.group, head = task.kvHead * plan.group + q % plan.group;
    float* out = job.rows.out + (row * plan.heads + head) * plan.valueLength;
    const float* values = result.values + q * plan.valueStride;
    float sum = result.sum[q], shrink = 1;
    if (job.rows.sinks) {
      const float sink = job.rows.sinks[head], max = std::max(result.max[q], sink);
      shrink = std::exp(result.max[q] - max);
      sum = sum * shrink + std::exp(sink - max);
    }
    for (uint32_t v = 0; v < plan.valueLength; ++v) out[v] = values[v] * shrink / sum;
    gate(job, row, head, out);
  }
}

void Attender::gate(const Job& job, size_t row, size_t head, float* out) const {
  const Plan& plan = job.plan;
  const size_t at = row * plan.heads + head;
  switch (job.attention.gate) {
  case OutputGate::None: return;
  case OutputGate::Sigmoid: {
    const float* gates = job.rows.query + at * job.attention.queryRows() + plan.keyLength;
    for (uint32_t v = 0; v < plan.valueLength; ++v) out[v] *= sigmoid(gates[v]);
    return;
  }
  case OutputGate::SoftplusPerHead: {
    const float factor = softplus(job.rows.gate[at]);
    for (uint32_t v = 0; v < plan.valueLength; ++v) out[v] *= factor;
    return;
  }
  case OutputGate::SoftplusPerElement: {
    const float* gates = job.rows.gate + at * plan.valueLength;
    for (uint32_t v = 0; v < plan.valueLength; ++v) out[v] *= softplus(gates[v]);
    return;
  }
  }
}

} // namespace mashbox::cpu
