#pragma once

#include "cpu/backend_memory.hpp"
#include "kv/state_pool.hpp"
#include "model/delta_net.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::cpu {

/// Tokens of one chunk. Chunks begin at multiples of it, whatever the batches were.
inline constexpr uint32_t ChunkTokens = kv::StateChunk;
/// A sequence can be cut back by so many tokens within its last chunk.
inline constexpr uint32_t RollbackTokens = kv::StateRollback;

/// What the gated delta net layers remember of their sequences: the state S behind the last whole chunk, and of the tokens since
/// then the keys, the values that they add to S, and the running sum of their decay; besides those the last inputs of the
/// convolution. What a token gets is computed from these alone, in prefill and decode alike, so it does not depend on batching,
/// and S is written once a chunk. Nothing that was not written since the sequence's start is ever read.
class DeltaNetStates {
public:
  /// One layer of one state.
  struct Layer {
    float* sums;    ///< S: valueHeads × keyLength × valueLength, behind `chunk start` tokens
    float* inputs;  ///< position mod inputRows × convolutionWidth
    float* keys;    ///< keyHeads × keyLength × ChunkTokens
    float* values;  ///< valueHeads × ChunkTokens × valueLength
    double* decays; ///< valueHeads × ChunkTokens: the sum of g from the chunk's start on
  };

  /// `layers`: those with a delta net.
  static Result<DeltaNetStates> create(std::vector<model::DeltaNet> layers, uint32_t states);
  /// Bytes of one state.
  static uint64_t stateBytes(std::span<const model::DeltaNet> layers);
  static uint32_t inputRows(const model::DeltaNet& layer) { return layer.convolution - 1 + RollbackTokens; }

  std::span<const model::DeltaNet> layers() const { return layers_; }
  Layer layer(kv::StateId state, uint32_t layer) const;
  /// The part of a state that `length` tokens left behind.
  void copy(kv::StateId from, kv::StateId to, uint32_t length);
  /// That part as bytes, with a header that names its shape, its length and a checksum.
  std::vector<std::byte> save(kv::StateId state, uint32_t length) const;
  /// The length of what `save` wrote. Invalid, naming "state": not such bytes, or damaged ones; Inconsistent: of another shape.
  Result<uint32_t> load(std::span<const std::byte> bytes, kv::StateId state);

private:
  float* at(kv::StateId state, uint32_t layer) const;

  std::vector<model::DeltaNet> layers_;
  std::vector<uint64_t> offsets_; ///< floats before each layer, and their sum
  Region memory_;
};

} // namespace mashbox::cpu
