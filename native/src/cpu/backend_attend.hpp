#pragma once

#include "cpu/backend_attention.hpp"
#include "cpu/backend_cache.hpp"
#include "cpu/backend_rotations.hpp"
#include "cpu/thread_pool.hpp"
#include "model/backend.hpp"

#include <array>
#include <span>
#include <vector>

namespace mashbox::cpu {

/// One layer's attention as its rows stand in memory; see model::AttentionCall.
struct AttendRows {
  uint32_t layer;
  float *query, *key, *value;
  const float* gate;                        ///< of the softplus gates
  const float *queryNorm, *keyNorm, *sinks; ///< may be null
  float epsilon;
  float* out;
};

/// Norms, rope, KV append, attention and output gate. A sequence is cut into spans of 512 tokens; each gives a maximum, a sum and a
/// weighted sum of values, and these are merged in order. The cut depends on positions alone, so a result depends neither on threads
/// nor on batching.
class Attender {
public:
  /// The layers of `shape` that have a cache of their own, as KvCache wants them: those without a window, or those with one.
  static std::vector<KvCache::Layer> cacheLayers(const model::BackendShape& shape, bool windows);

  /// `windows`: of the layers with a window.
  Attender(const model::BackendShape& shape, KvCache cache, KvCache windows, const Kernels& kernels, ThreadPool& pool);

  void begin(std::span<const model::RowRange> ranges);
  void run(const AttendRows& rows);

private:
  struct Range {
    uint32_t firstRow, rows, position;
    std::array<size_t, 2> origin; ///< where in a table's blocks block 0 of the sequence would stand
  };
  /// Some rows of one range and one kv head, over some spans.
  struct Task {
    uint32_t range, kvHead;
    uint32_t row, rows; ///< within the range
    uint32_t firstSpan, endSpan;
    size_t partial; ///< its result's place in partials_ where the spans of a row are shared out
    bool continues; ///< the task before it has the same rows
  };
  /// Layers of one shape divide a step in one way.
  struct Plan {
    uint32_t heads, kvHeads, keyLength, valueLength, window;
    uint32_t group, valueStride, taskRows;
    bool splitSpans = false;
    std::vector<Task> tasks;

    size_t partialFloats(size_t queries) const { return queries * (2 + valueStride); }
  };
  struct Layer {
    model::Attention attention;
    uint32_t plan;
    bool window;    ///< its K and V are in the cache of layers with a window
    uint32_t cache; ///< its place there
  };
  /// The blocks of all ranges in one cache, and where the rows' K and V go.
  struct Table {
    KvCache cache;
    std::vector<kv::BlockId> blocks, rows;
  };
  /// One call: its rows, its layer and how that layer divides the step.
  struct Job {
    const AttendRows& rows;
    const model::Attention& attention;
    const Plan& plan;
    Table& table;
    uint32_t cache;

    const std::byte* keys(kv::BlockId block, uint32_t kvHead) const { return table.cache.keys(block, cache, kvHead); }
    const std::byte* values(kv::BlockId block, uint32_t kvHead) const { return table.cache.values(block, cache, kvHead); }
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

  uint32_t planOf(const model::Attention& attention);
  void planTasks(Plan& plan);
  void prepare(const Job& job, uint32_t row, uint32_t kvHead);
  void attend(const Job& job, const Task& task, Scratch& scratch, Partial result);
  void attendSpan(const Job& job, const Task& task, uint32_t span, Scratch& scratch, Partial result);
  void addBlock(const Job& job, uint32_t kvHead, kv::BlockId block, size_t first, size_t count, size_t from, size_t tokens, Scratch& scratch,
                Partial result);
  void mergeSpans(const Job& job);
  void merge(const Plan& plan, Partial into, Partial from, size_t queries) const;
  void finish(const Job& job, const Task& task, Partial result) const;
  void gate(const Job& job, size_t row, size_t head, float* out) const;
  Partial partialAt(float* at, size_t queries) const { return {at, at + queries, at + 2 * queries}; }

  std::array<Table, 2> tables_; ///< of layers without and with a window
  const Kernels& kernels_;
  const AttentionKernels& attention_;
  ThreadPool& pool_;
  Rotations rotations_;
  std::vector<Layer> layers_; ///< by layer of the model
  std::vector<float> ones_;   ///< the weights of a norm without weights

  std::vector<Range> ranges_;
  std::vector<uint32_t> positions_; ///< of the rows
  std::vector<Plan> plans_;
  std::vector<float> partials_;
  bool singleRows_ = false;
  std::vector<Scratch> scratch_; ///< one per worker
};

} // namespace mashbox::cpu
