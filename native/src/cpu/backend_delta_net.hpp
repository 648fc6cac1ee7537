#pragma once

#include "cpu/backend_delta_net_kernels.hpp"
#include "cpu/backend_delta_states.hpp"
#include "cpu/line_vector.hpp"
#include "cpu/thread_pool.hpp"
#include "model/backend.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::cpu {

/// One kind of input values within a row of a projection's output: head h at values + row · rowStride + offsetOf(h).
struct DeltaNetInput {
  const float* values = nullptr;
  size_t rowStride = 0;
  uint32_t groupHeads = 1; ///< heads that stand next to each other
  size_t groupStride = 0;  ///< from one such group to the next
  size_t headStride = 0;   ///< within a group

  const float* at(size_t row, uint32_t head) const { return values + row * rowStride + head / groupHeads * groupStride + head % groupHeads * headStride; }
};

/// One layer's delta net as its rows stand in memory.
struct DeltaNetRows {
  uint32_t layer; ///< among the delta net layers
  DeltaNetInput query, key, value; ///< before the convolution
  DeltaNetInput gate;              ///< z
  DeltaNetInput beta, alpha;       ///< one value per value head
  const float* taps;               ///< convolution × convolutionWidth, the oldest tap first
  const float *timeBias, *decay, *norm; ///< ssm_dt.bias and ssm_a {valueHeads}, ssm_norm {valueLength}
  float epsilon;
  float* out; ///< rows × valueHeads · valueLength
};

/// Convolution, gated delta rule and gated norm of a batch's rows, chunk by chunk. Within a chunk that begins behind the state S,
/// with G the running sum of g, row i adds v'ᵢ = βᵢ (vᵢ − e^Gᵢ Sᵀkᵢ − Σ_{j<i} e^(Gᵢ−Gⱼ) (kᵢ·kⱼ) v'ⱼ) and sees
/// oᵢ = e^Gᵢ Sᵀqᵢ + Σ_{j≤i} e^(Gᵢ−Gⱼ) (qᵢ·kⱼ) v'ⱼ. A whole chunk is S ← e^G S + Σ e^(G−Gⱼ) kⱼ v'ⱼᵀ. Sums run in rising order of j
/// whatever part of a chunk a batch has, so prefill, decode and every cut in between give the same bits.
class DeltaNetMixer {
public:
  static Result<DeltaNetMixer> create(DeltaNetStates states, uint32_t batchRows, const Kernels& kernels, ThreadPool& pool);
  /// Bytes of scratch memory.
  static uint64_t scratchBytes(std::span<const model::DeltaNet> layers, uint32_t batchRows);

  DeltaNetStates& states() { return states_; }
  const DeltaNetStates& states() const { return states_; }
  void begin(std::span<const model::RowRange> ranges);
  void run(const DeltaNetRows& rows);

private:
  /// Rows of one sequence within one chunk.
  struct Piece {
    kv::StateId state;
    uint32_t row, rows;             ///< of the batch
    uint32_t position;              ///< of its first row
    uint32_t rangeRow;              ///< first row of its range
    bool last;                      ///< of its range
    uint32_t from() const { return position % ChunkTokens; } ///< within the chunk
    uint32_t to() const { return from() + rows; }
    bool first() const { return position < ChunkTokens; } ///< its chunk begins with an empty state
  };
  struct Scratch {
    LineVector<float> seen, keyWeights, queryWeights, sums, scaledKeys, exponents;
    std::vector<const float*> inputs;
  };

  DeltaNetMixer(DeltaNetStates states, const Kernels& kernels, ThreadPool& pool);
  void runByKeyHeads(const DeltaNetRows& rows, std::span<const Piece> pieces);
  void runByHeads(const DeltaNetRows& rows, std::span<const Piece> pieces);
  void convolve(const DeltaNetRows& rows, const Piece& piece, const DeltaNetInput& input, uint32_t head, size_t channel, size_t length, Scratch& scratch,
                float* out, size_t stride) const;
  void keyHead(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch);
  void valueHead(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch);
  void mix(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch);
  void seeState(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch);
  void weigh(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch);
  void substitute(const Piece& piece, float* values, size_t length, Scratch& scratch) const;
  void finishChunk(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch);
  void keepInputs(const DeltaNetRows& rows, const Piece& piece, const DeltaNetInput& input, uint32_t head, size_t channel, size_t length);

  uint32_t keyHeadOf(uint32_t valueHead) const;
  uint32_t valueHeadOf(uint32_t keyHead, uint32_t index) const;
  float* pairs(uint32_t keyHead, size_t row) const;  ///< [key | query] of a row
  float* dots(uint32_t keyHead, size_t row) const;   ///< those of both with the chunk's keys
  float* values(uint32_t valueHead, size_t row) const;

  DeltaNetStates states_;
  const Kernels* kernels_;
  const DeltaNetKernels* deltaNet_;
  ThreadPool* pool_;
  uint32_t batchRows_ = 0;
  model::DeltaNet shape_; ///< of the running layer
  std::vector<std::vector<Piece>> waves_; ///< the first, second, … chunk of every range
  size_t waveCount_ = 0;
  Region pairs_, dots_, values_;
  LineVector<float> zeros_;
  std::vector<Scratch> scratch_; ///< one per worker
};

} // namespace mashbox::cpu
