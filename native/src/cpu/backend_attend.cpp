#include "cpu/backend_attend.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mashbox::cpu {
namespace {

constexpr uint32_t SpanTokens = 512, SpanBlocks = SpanTokens / kv::BlockTokens;
constexpr uint32_t TaskQueries = 24; ///< of one task: their sums stay in the first-level cache
constexpr float Lowest = -std::numeric_limits<float>::infinity();

uint32_t spansOf(uint32_t tokens) { return (tokens + SpanTokens - 1) / SpanTokens; }

} // namespace

Attender::Attender(const model::BackendShape& shape, KvCache cache, const Kernels& kernels, ThreadPool& pool)
    : cache_(std::move(cache)), kernels_(kernels), attention_(attentionKernels(kernels.isa, cache_.shape().half)), pool_(pool),
      rotation_(shape.rotation), heads_(shape.heads), kvHeads_(shape.kvHeads), group_(shape.heads / shape.kvHeads),
      keyLength_(shape.keyLength), valueLength_(shape.valueLength), valueStride_(cache_.shape().valueStride()),
      taskRows_(std::max(1u, TaskQueries / group_)), scratch_(pool.size()) {
  const size_t queries = size_t{taskRows_} * group_;
  for (Scratch& scratch : scratch_) {
    scratch.queries.resize(queries);
    scratch.sums.resize(queries);
    scratch.scores.resize(queries * kv::BlockTokens);
    scratch.result.resize(partialFloats(queries));
    scratch.span.resize(partialFloats(queries));
  }
}

void Attender::begin(std::span<const model::RowRange> ranges) {
  ranges_.clear();
  blocks_.clear();
  rows_.clear();
  singleRows_ = true;
  for (const model::RowRange& range : ranges) {
    ranges_.push_back({range.firstRow, range.rows, range.position, blocks_.size()});
    blocks_.insert(blocks_.end(), range.blocks.begin(), range.blocks.end());
    singleRows_ = singleRows_ && range.rows == 1;
    for (uint32_t i = 0; i < range.rows; ++i) {
      const uint32_t position = range.position + i;
      rows_.push_back({position, range.blocks[position / kv::BlockTokens]});
    }
  }
  rotations();
  planTasks();
}

void Attender::rotations() {
  const size_t pairs = rotation_.frequencies.size();
  cos_.resize(rows_.size() * pairs);
  sin_.resize(rows_.size() * pairs);
  constexpr size_t GrainAngles = 512;
  pool_.parallelFor(rows_.size(), 1 + GrainAngles / (pairs + 1), [&](size_t begin, size_t end, unsigned) {
    for (size_t row = begin; row < end; ++row)
      for (size_t i = 0; i < pairs; ++i) {
        const double angle = rows_[row].position * rotation_.frequencies[i];
        cos_[row * pairs + i] = static_cast<float>(std::cos(angle) * rotation_.magnitude);
        sin_[row * pairs + i] = static_cast<float>(std::sin(angle) * rotation_.magnitude);
      }
  });
}

void Attender::planTasks() {
  tasks_.clear();
  for (uint32_t r = 0; r < ranges_.size(); ++r)
    for (uint32_t row = 0; row < ranges_[r].rows; row += taskRows_)
      for (uint32_t head = 0; head < kvHeads_; ++head) {
        const uint32_t rows = std::min(taskRows_, ranges_[r].rows - row);
        tasks_.push_back({r, head, row, rows, 0, spansOf(ranges_[r].position + row + rows), 0});
      }

  // Too few tasks to keep every thread busy: share out the spans, too.
  const bool several = std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.endSpan > 1; });
  splitSpans_ = several && pool_.size() > 1 && tasks_.size() < 4 * pool_.size();
  if (!splitSpans_) return;
  std::vector<Task> split;
  size_t floats = 0;
  for (const Task& task : tasks_)
    for (uint32_t span = 0; span < task.endSpan; ++span) {
      split.push_back({task.range, task.kvHead, task.row, task.rows, span, span + 1, floats});
      floats += partialFloats(size_t{task.rows} * group_);
    }
  tasks_ = std::move(split);
  partials_.resize(floats);
}

void Attender::run(const AttendRows& rows) {
  const bool fused = singleRows_ && !splitSpans_;
  if (!fused) {
    constexpr size_t GrainHeads = 8;
    pool_.parallelFor(rows_.size() * kvHeads_, GrainHeads, [&](size_t begin, size_t end, unsigned) {
      for (size_t i = begin; i < end; ++i) prepare(rows, static_cast<uint32_t>(i / kvHeads_), static_cast<uint32_t>(i % kvHeads_));
    });
  }
  pool_.parallelFor(tasks_.size(), 1, [&](size_t begin, size_t end, unsigned worker) {
    for (size_t i = begin; i < end; ++i) {
      const Task& task = tasks_[i];
      const size_t queries = size_t{task.rows} * group_;
      if (fused) prepare(rows, ranges_[task.range].firstRow, task.kvHead);
      const Partial result = partialAt(splitSpans_ ? partials_.data() + task.partial : scratch_[worker].result.data(), queries);
      attend(rows, task, scratch_[worker], result);
      if (!splitSpans_) finish(rows, task, result);
    }
  });
  if (!splitSpans_) return;
  for (size_t first = 0, i = 1; first < tasks_.size(); ++i) {
    const size_t queries = size_t{tasks_[first].rows} * group_;
    const Partial result = partialAt(partials_.data() + tasks_[first].partial, queries);
    if (i < tasks_.size() && tasks_[i].firstSpan > 0) {
      merge(result, partialAt(partials_.data() + tasks_[i].partial, queries), queries);
    } else {
      finish(rows, tasks_[first], result);
      first = i;
    }
  }
}

void Attender::prepare(const AttendRows& rows, uint32_t row, uint32_t kvHead) {
  const Row& at = rows_[row];
  const auto turn = [&](float* head, const float* norm) {
    if (norm) kernels_.rmsNorm(head, norm, rows.epsilon, head, keyLength_);
    rotate(head, row);
  };
  float* query = rows.query + (size_t{row} * heads_ + size_t{kvHead} * group_) * keyLength_;
  for (uint32_t i = 0; i < group_; ++i) turn(query + size_t{i} * keyLength_, rows.queryNorm);
  float* key = rows.key + (size_t{row} * kvHeads_ + kvHead) * keyLength_;
  turn(key, rows.keyNorm);
  const float* value = rows.value + (size_t{row} * kvHeads_ + kvHead) * valueLength_;
  cache_.write(at.block, rows.layer, kvHead, at.position % kv::BlockTokens, key, value);
}

void Attender::rotate(float* head, uint32_t row) const {
  const size_t pairs = rotation_.frequencies.size();
  const float* cos = cos_.data() + row * pairs;
  const float* sin = sin_.data() + row * pairs;
  const bool adjacent = rotation_.pairing == model::RopePairing::Adjacent;
  const size_t step = adjacent ? 2 : 1, distance = adjacent ? 1 : pairs;
  for (size_t i = 0; i < pairs; ++i) {
    const float a = head[i * step], b = head[i * step + distance];
    head[i * step] = a * cos[i] - b * sin[i];
    head[i * step + distance] = a * sin[i] + b * cos[i];
  }
}

void Attender::attend(const AttendRows& rows, const Task& task, Scratch& scratch, Partial result) {
  const size_t queries = size_t{task.rows} * group_;
  const uint32_t firstRow = ranges_[task.range].firstRow + task.row;
  for (size_t i = 0; i < queries; ++i)
    scratch.queries[i] = rows.query + ((firstRow + i / group_) * heads_ + task.kvHead * group_ + i % group_) * keyLength_;
  attendSpan(rows, task, task.firstSpan, scratch, result);
  for (uint32_t span = task.firstSpan + 1; span < task.endSpan; ++span) {
    const Partial part = partialAt(scratch.span.data(), queries);
    attendSpan(rows, task, span, scratch, part);
    merge(result, part, queries);
  }
}

void Attender::attendSpan(const AttendRows& rows, const Task& task, uint32_t span, Scratch& scratch, Partial result) {
  const size_t queries = size_t{task.rows} * group_;
  std::fill_n(result.max, queries, Lowest);
  std::fill_n(result.sum, queries, 0.0f);
  std::fill_n(result.values, queries * valueStride_, 0.0f);
  for (size_t i = 0; i < queries; ++i) scratch.sums[i] = result.values + i * valueStride_;

  const Range& range = ranges_[task.range];
  const uint32_t position = range.position + task.row; // of the task's first row
  const uint32_t endBlock = std::min((span + 1) * SpanBlocks, (position + task.rows + kv::BlockTokens - 1) / kv::BlockTokens);
  for (uint32_t b = span * SpanBlocks; b < endBlock; ++b) {
    const kv::BlockId block = blocks_[range.firstBlock + b];
    const uint32_t token = b * kv::BlockTokens, last = token + kv::BlockTokens - 1;
    const uint32_t sees = token > position ? token - position : 0;                               // the first row that sees any token
    const uint32_t seesAll = std::min(task.rows, last > position ? last - position : 0); // the first row that sees all of them
    for (uint32_t row = sees; row < seesAll; ++row)
      addBlock(rows, task, block, size_t{row} * group_, group_, position + row - token + 1, scratch, result);
    if (seesAll < task.rows)
      addBlock(rows, task, block, size_t{seesAll} * group_, size_t{task.rows - seesAll} * group_, kv::BlockTokens, scratch, result);
  }
}

void Attender::addBlock(const AttendRows& rows, const Task& task, kv::BlockId block, size_t first, size_t count, size_t tokens,
                        Scratch& scratch, Partial result) {
  float* const scores = scratch.scores.data();
  attention_.scores(scratch.queries.data() + first, count, cache_.keys(block, rows.layer, task.kvHead), keyLength_, scores);
  for (size_t i = 0; i < count; ++i) {
    const size_t q = first + i;
    const float before = result.max[q];
    const float sum = attention_.weigh(scores + i * kv::BlockTokens, tokens, rows.scale, &result.max[q]);
    if (result.max[q] != before) {
      const float shrink = std::exp(before - result.max[q]);
      result.sum[q] *= shrink;
      for (uint32_t v = 0; v < valueStride_; ++v) scratch.sums[q][v] *= shrink;
    }
    result.sum[q] += sum;
  }
  attention_.accumulate(scores, count, tokens, cache_.values(block, rows.layer, task.kvHead), valueStride_, scratch.sums.data() + first);
}

void Attender::merge(Partial into, Partial from, size_t queries) const {
  for (size_t q = 0; q < queries; ++q) {
    if (from.max[q] == Lowest) continue;
    const float max = std::max(into.max[q], from.max[q]);
    const float a = std::exp(into.max[q] - max), b = std::exp(from.max[q] - max);
    into.max[q] = max;
    into.sum[q] = into.sum[q] * a + from.sum[q] * b;
    float* values = into.values + q * valueStride_;
    const float* more = from.values + q * valueStride_;
    for (uint32_t v = 0; v < valueStride_; ++v) values[v] = values[v] * a + more[v] * b;
  }
}

void Attender::finish(const AttendRows& rows, const Task& task, Partial result) const {
  const uint32_t firstRow = ranges_[task.range].firstRow + task.row;
  for (size_t q = 0; q < size_t{task.rows} * group_; ++q) {
    float* out = rows.out + ((firstRow + q / group_) * heads_ + task.kvHead * group_ + q % group_) * valueLength_;
    const float* values = result.values + q * valueStride_;
    for (uint32_t v = 0; v < valueLength_; ++v) out[v] = values[v] / result.sum[q];
  }
}

} // namespace mashbox::cpu
