#pragma once

#include "base/result.hpp"
#include "cpu/kernels.hpp"
#include "kv/block_pool.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mashbox::gguf {
class File;
}

namespace mashbox::model {

struct Config; ///< model/config.hpp: GGUF keys → flags
struct ExpertPaths; ///< model/experts_paths.hpp

enum class KvType { F16, F32 };

struct LoadOptions {
  std::string path;
  unsigned threads = 0;                      ///< 0: every available core
  cpu::Isa isa = cpu::detectIsa();
  std::function<void(double)> onProgress;    ///< fraction of the weights that were read
};

struct ContextOptions {
  uint32_t slots = 4;
  uint32_t contextLength = 0; ///< per slot; 0: the model's own, but at most 32768, lowered to what fits
  KvType kvType = KvType::F16;
  uint32_t batchTokens = 256; ///< most rows of one step
  uint32_t snapshots = 0;     ///< of recurrent states, besides one state per slot
};

/// Bytes of one KV block.
struct BlockBytes {
  uint64_t whole = 0;  ///< over all layers without a window
  uint64_t window = 0; ///< over all layers with one
};

/// What loading would take, computed before anything is allocated.
struct MemoryPlan {
  uint64_t weights = 0, kvCache = 0, scratch = 0; ///< bytes
  uint64_t states = 0;                            ///< bytes of recurrent states
  uint64_t available = 0;                         ///< what the system can give now
  uint32_t contextLength = 0;
  uint32_t largestContext = 0; ///< the largest context per slot that would fit with these slots
  uint32_t largestSlots = 0;   ///< the most slots that would fit with this context
};

/// What a model is and would take, found without reading its weights.
struct Inspection {
  std::string architecture;
  uint32_t layers, predictionBlocks, vocabulary, trainedContext; ///< predictionBlocks: for multi-token prediction, kept aside
  MemoryPlan plan;
};

enum class Logits { None, Last, All };

/// New tokens of one sequence, to be run at positions [sequence->length(), …).
struct Segment {
  kv::Sequence* sequence;
  std::span<const int32_t> tokens;
  Logits logits;
};

/// A loaded model: weights and the forward program over one backend. Its weights are immutable; `Context` holds what changes.
class Model {
public:
  static Result<std::shared_ptr<const Model>> load(const LoadOptions& options);
  /// Everything that `load` checks before it reads the weights' values, and the plan for a context that need not fit.
  static Result<Inspection> inspect(const std::string& path, const ContextOptions& options);
  ~Model();
  const Config& config() const;
  const gguf::File& file() const; ///< what it was loaded from
  const ExpertPaths& expertPaths() const;
  MemoryPlan plan(const ContextOptions& options) const;

private:
  friend class Context;
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// KV blocks and scratch memory for `slots` sequences.
class Context {
public:
  /// OutOfMemory names the largest `ctx` and `slots` that would fit.
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Model> model, const ContextOptions& options);
  ~Context();
  const Model& model() const;
  uint32_t contextLength() const;
  uint32_t slots() const;
  kv::BlockPool& pool();

  /// Runs all segments as one batch and leaves one row of `config().vocabulary` logits per wanted token, in segment order, valid until
  /// the next call. A row's result does not depend on the other segments or on chunking. Reserves room in every sequence, writes K and
  /// V and advances them; the caller does not. Rejected (nothing has changed): no rows or more than `batchTokens`, a token out of range,
  /// past the context, a sequence twice, a write into a shared block. OutOfMemory: no free block; no sequence has advanced.
  Result<std::span<const float>> forward(std::span<const Segment> segments);

  /// The bytes of a recurrent state, with a header that names its shape and length and a checksum.
  std::vector<std::byte> saveState(const kv::Snapshot& snapshot) const;
  /// The snapshot that `saveState` wrote. Invalid where the bytes are damaged, Inconsistent where they belong to a model of another shape
  /// (both name "state"); Rejected without recurrent layers; OutOfMemory when all snapshots are in use.
  Result<kv::Snapshot> loadState(std::span<const std::byte> bytes);

private:
  struct Impl;
  explicit Context(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace mashbox::model
