#pragma once

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "kv/block_pool.hpp"
#include "model/model.hpp"
#include "model/rope.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace mashbox::model {

/// A weight on a device; only the device looks inside.
enum class Weight : uint32_t { None = UINT32_MAX };

/// Rows of float32 values that a backend owns, `batchRows` of them at most.
enum class Buffer : uint32_t {};

/// Consecutive rows of one sequence: row `firstRow + i` of the batch sits at `position + i`. `blocks` has room for all of them.
struct RowRange {
  uint32_t firstRow, rows, position;
  std::span<const kv::BlockId> blocks;
};

/// One step: plain arrays that a device copies once.
struct Batch {
  std::span<const int32_t> tokens; ///< one per row
  std::span<const RowRange> ranges; ///< cover the rows in order
};

/// out = scale · W x + bias, or out += … where `add` is set.
struct Projection {
  Weight weight;
  Weight bias = Weight::None;
  float scale = 1;
  Buffer out;
  bool add = false;
};

/// Rope, append to the KV cache, and causal attention of one layer.
struct Attention {
  uint32_t layer;
  Buffer query, key, value; ///< rows × heads × length; the query is changed in place
  Weight queryNorm = Weight::None, keyNorm = Weight::None;
  float epsilon;
  float scale;
  Buffer out; ///< rows × heads × valueLength
};

/// The shape of everything that a backend allocates for one context.
struct BackendShape {
  uint32_t batchRows;
  uint32_t blocks; ///< of kv::BlockTokens tokens
  uint32_t layers, heads, kvHeads, keyLength, valueLength;
  KvType kvType;
  Rotation rotation;
};

/// The fused operations of the forward program over buffers, weights and the KV cache of one context. Operations run in the order
/// of the calls; none returns values to the host except `logits`, so a device may run them asynchronously. A row's result does not
/// depend on the other rows.
class Backend {
public:
  virtual ~Backend() = default;

  /// A buffer of `batchRows` × `width` values.
  virtual Result<Buffer> allocate(uint32_t width) = 0;

  /// Starts a step: its rows, their positions and block tables, and the rotation of every row.
  virtual void begin(const Batch& batch) = 0;
  /// out = the rows of `table` for the batch's tokens.
  virtual void embed(Weight table, Buffer out) = 0;
  virtual void rmsNorm(uint32_t rows, Buffer in, Weight weight, float epsilon, Buffer out) = 0;
  /// Linear layers that share their input, as one parallel region.
  virtual void project(uint32_t rows, Buffer in, std::span<const Projection> projections) = 0;
  /// gate.out = silu(gate in) · (up in); `up.out` is scratch.
  virtual void projectGated(uint32_t rows, Buffer in, const Projection& gate, const Projection& up) = 0;
  virtual void attend(const Attention& attention) = 0;
  /// out[i] = in[rows[i]], where `rows` rises; `in` may be `out`.
  virtual void selectRows(std::span<const uint32_t> rows, Buffer in, Buffer out) = 0;
  /// Host rows of the head's outputs, valid until the next call of `logits`. Outputs from `tokens` on are −∞.
  virtual Result<std::span<const float>> logits(uint32_t rows, Buffer in, const Projection& head, uint32_t tokens) = 0;
};

/// Where the weights of a model live; shared by its contexts.
class Device {
public:
  virtual ~Device() = default;
  /// Places a matrix, or a vector as float32. The tensor's bytes outlive the device.
  virtual Result<Weight> place(const gguf::Tensor& tensor) = 0;
  /// Bytes of one KV block over all layers.
  virtual uint64_t blockBytes(const BackendShape& shape) const = 0;
  /// Bytes of memory that the system can give this process now.
  virtual uint64_t availableMemory() const = 0;
  virtual Result<std::unique_ptr<Backend>> open(const BackendShape& shape) const = 0;
};

} // namespace mashbox::model
