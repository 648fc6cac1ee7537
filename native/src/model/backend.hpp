#pragma once

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "kv/block_pool.hpp"
#include "model/config.hpp"
#include "model/model.hpp"
#include "model/rope.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mashbox::model {

/// A weight on a device; only the device looks inside.
enum class Weight : uint32_t { None = UINT32_MAX };

/// Rows of float32 values that a backend owns, `batchRows` of them at most.
enum class Buffer : uint32_t {};

/// Some blocks of a sequence: `blocks[i]` holds positions from (first + i) · kv::BlockTokens on.
struct BlockTable {
  uint32_t first = 0;
  std::span<const kv::BlockId> blocks;
};

/// Consecutive rows of one sequence: row `firstRow + i` of the batch sits at `position + i`. Its blocks have room for all of them.
struct RowRange {
  uint32_t firstRow, rows, position;
  std::span<const kv::BlockId> blocks;     ///< of layers without a window
  kv::StateId state{};                     ///< of models with recurrent layers; stands behind `position` tokens
  std::optional<kv::StateId> stateSource{}; ///< holds what `state` shall hold before the step
  BlockTable window{};                      ///< of layers with a window, from the first block that a row sees on
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

/// Norms, rope, append to the KV cache, causal attention and output gate of one layer, as its `attention` says.
struct AttentionCall {
  uint32_t layer;
  const Attention& attention;
  Buffer query;      ///< rows × heads × queryRows(); changed in place
  Buffer key, value; ///< rows × kvHeads × length; changed in place; unused with `cacheOf`
  Buffer gate;       ///< of the softplus gates
  Weight queryNorm = Weight::None, keyNorm = Weight::None, sinks = Weight::None;
  float epsilon;
  Buffer out; ///< rows × heads × valueLength
};

/// The embeddings that layers have of their own, for all layers at once: of every row's slices of the norm's length,
/// values = (rms(values) · norm + tokenScale · table[token]) · scale.
struct PerLayerCall {
  Buffer values; ///< rows × layers × length
  Weight norm, table;
  float epsilon, tokenScale, scale;
};

struct ExpertsCall;  ///< model/experts_weights.hpp
struct DeltaNetCall; ///< model/delta_net_weights.hpp

/// The shape of everything that a backend allocates for one context.
struct BackendShape {
  uint32_t batchRows;
  uint32_t blocks;       ///< of kv::BlockTokens tokens, of the layers without a window
  uint32_t windowBlocks; ///< of those with one
  uint32_t states;       ///< recurrent states
  uint32_t width; ///< of the residual stream
  std::span<const LayerConfig> layers; ///< outlive the backend
  KvType kvType;
  std::vector<Rotation> rotations; ///< of Config::ropes
};

/// The fused operations of the forward program over buffers, weights and the KV cache of one context. Operations run in the order
/// of the calls; none returns values to the host except `logits`, so a device may run them asynchronously. A row's result does not
/// depend on the other rows. Rows of a buffer have the width that the last operation wrote.
class Backend {
public:
  virtual ~Backend() = default;

  /// A buffer of `batchRows` × at most `width` values.
  virtual Result<Buffer> allocate(uint32_t width) = 0;

  /// Starts a step: its rows, their positions and block tables, and the rotations of every row.
  virtual void begin(const Batch& batch) = 0;
  /// out = scale · the rows of `table` for the batch's tokens.
  virtual void embed(Weight table, float scale, Buffer out) = 0;
  virtual void perLayerEmbeddings(const PerLayerCall& call) = 0;
  /// `weight` may be None; `scale` multiplies the result.
  virtual void rmsNorm(uint32_t rows, Buffer in, Weight weight, float epsilon, Buffer out, float scale = 1) = 0;
  /// out = (out + rms(in) · weight) · scale.
  virtual void addNormed(uint32_t rows, Buffer in, Weight weight, float epsilon, float scale, Buffer out) = 0;
  /// Linear layers that share their input, as one parallel region.
  virtual void project(uint32_t rows, Buffer in, std::span<const Projection> projections) = 0;
  /// gate.out = activation(gate in) · (up in); `up.out` is scratch.
  virtual void projectGated(uint32_t rows, Buffer in, Activation activation, const Projection& gate, const Projection& up) = 0;
  /// gate = activation(gate) · the columns of `other` from `column` on.
  virtual void multiplyGated(uint32_t rows, Buffer gate, Activation activation, Buffer other, uint32_t column) = 0;
  virtual void attend(const AttentionCall& call) = 0;
  virtual void experts(const ExpertsCall& call) = 0;
  virtual void deltaNet(const DeltaNetCall& call) = 0;
  /// A recurrent state behind `length` tokens as bytes. Waits for the operations before.
  virtual std::vector<std::byte> saveState(kv::StateId state, uint32_t length) const = 0;
  /// The length of what `saveState` wrote. Invalid (damaged) or Inconsistent (of another model), naming "state"; the state's content is
  /// of no use then.
  virtual Result<uint32_t> loadState(std::span<const std::byte> bytes, kv::StateId state) = 0;
  /// out[i] = in[rows[i]], where `rows` rises; `in` may be `out`.
  virtual void selectRows(std::span<const uint32_t> rows, Buffer in, Buffer out) = 0;
  /// Host rows of the head's outputs, valid until the next call of `logits`. Each becomes softcap · tanh(x / softcap) unless that is
  /// 0; outputs from `tokens` on are −∞.
  virtual Result<std::span<const float>> logits(uint32_t rows, Buffer in, const Projection& head, float softcap, uint32_t tokens) = 0;
};

/// Where the weights of a model live; shared by its contexts.
class Device {
public:
  virtual ~Device() = default;
  /// Places a matrix, a stack of matrices, or a vector as float32. The tensor's bytes outlive the device.
  virtual Result<Weight> place(const gguf::Tensor& tensor) = 0;
  /// Places matrices of one shape and type as if they were a stack.
  virtual Result<Weight> placeStack(std::span<const gguf::Tensor* const> matrices) = 0;
  virtual BlockBytes blockBytes(const BackendShape& shape) const = 0;
  /// Bytes of one recurrent state over all layers; 0 without recurrent layers.
  virtual uint64_t stateBytes(const BackendShape& shape) const = 0;
  /// Bytes of memory that the system can give this process now.
  virtual uint64_t availableMemory() const = 0;
  virtual Result<std::unique_ptr<Backend>> open(const BackendShape& shape) const = 0;
};

} // namespace mashbox::model
