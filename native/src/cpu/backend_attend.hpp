#pragma once

#include "cpu/backend_attention.hpp"
#include "cpu/backend_cache.hpp"
#include "cpu/thread_pool.hpp"
#include "model/backend.hpp"

#include <vector>

namespace mashbox::cpu {

/// One layer's attention as its rows stand in memory; see model::Attention.
struct AttendRows {
  uint32_t layer;
  float *query, *key;
  const float* value;
  const float *queryNorm, *keyNorm; ///< may be null
  float epsilon, scale;
  float* out;
};

/// Rope, KV append and attention. A sequence is cut into spans of 512 tokens; each gives a maximum, a sum and a weighted sum of
/// values, and these are merged in order. The cut depends on positions alone, so a result depends neither on threads nor on batching.
class Attender {
public:
  Attender(const model::BackendShape& shape, KvCache cache, const Kernels& kernels, ThreadPool& pool);

  void begin(std::span<const model::RowRange> ranges);
  void run(const AttendRows& rows);

private:
  struct Range {
    uint32_t firstRow, rows, position;
    size_t firstBlock; ///< in blocks_
  };
  struct Row {
    uint32_t position;
    kv::BlockId block;
  };
  /// Some rows of one range and one kv head, over some spans.
  struct Task {
    uint32_t range, kvHead;
    uint32_t row, rows; ///< within the range
    uint32_t firstSpan, endSpan;
    size_t partial; ///< its result's place in partials_ where the spans of a row are shared out
  };
  /// The running softmax of some queries: largest score, sum of weights, weighted sum of values (valueStride each).
  struct Partial {
    float *max, *sum, *values;
  };
  struct Scratch {
    std::vector<const float*> queries;
    std::vector<float*> sums;
    std::vector<float> scores, result, span;
  };

  void planTasks();
  void rotations();
  void prepare(const AttendRows& rows, uint32_t row, uint32_t kvHead);
  void rotate(float* head, uint32_t row) const;
  void attend(const AttendRows& rows, const Task& task, Scratch& scratch, Partial result);
  void attendSpan(const AttendRows& rows, const Task& task, uint32_t span, Scratch& scratch, Partial result);
  void addBlock(const AttendRows& rows, const Task& task, kv::BlockId block, size_t first, size_t count, size_t tokens, Scratch& scratch, Partial result);
  void merge(Partial into, Partial from, size_t queries) const;
  void finish(const AttendRows& rows, const Task& task, Partial result) const;
  size_t partialFloats(size_t queries) const { return queries * (2 + valueStride_); }
  Partial partialAt(float* at, size_t queries) const { return {at, at + queries, at + 2 * queries}; }

  KvCache cache_;
  const Kernels& kernels_;
  const AttentionKernels& attention_;
  ThreadPool& pool_;
  const model::Rotation rotation_;
  const uint32_t heads_, kvHeads_, group_, keyLength_, valueLength_, valueStride_;
  const uint32_t taskRows_;

  std::vector<Range> ranges_;
  std::vector<kv::BlockId> blocks_;
  std::vector<Row> rows_;
  std::vector<float> cos_, sin_; ///< rows × rotated pairs
  std::vector<Task> tasks_;
  std::vector<float> partials_;
  bool splitSpans_ = false, singleRows_ = false;
  std::vector<Scratch> scratch_; ///< one per worker
};

} // namespace mashbox::cpu
