#include "cpu/backend_delta_net.hpp"

#include <algorithm>
#include <cmath>

namespace mashbox::cpu {
namespace {

using model::DeltaNet;

/// Rows that are solved against all earlier ones at once.
constexpr uint32_t PanelRows = 6;

/// Rows that are fetched ahead: a head's values of one row are far from those of the next.
constexpr uint32_t RowsAhead = 4;

void prefetch(const float* values, size_t count) {
  for (size_t i = 0; i < count; i += 16) __builtin_prefetch(values + i);
}

size_t wholeUnits(size_t n) { return (n + 15) / 16 * 16; }

float exponential(double x) { return x < LeastExponent ? 0 : std::exp(static_cast<float>(x)); }

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

DeltaNet largest(std::span<const DeltaNet> layers) {
  DeltaNet most{.convolution = 0};
  for (const DeltaNet& d : layers) {
    most.keyHeads = std::max(most.keyHeads, d.keyHeads);
    most.valueHeads = std::max(most.valueHeads, d.valueHeads);
    most.keyLength = std::max(most.keyLength, d.keyLength);
    most.valueLength = std::max(most.valueLength, d.valueLength);
    most.convolution = std::max(most.convolution, d.convolution);
  }
  return most;
}

uint64_t pairBytes(const DeltaNet& d, uint32_t rows) { return uint64_t{d.keyHeads} * rows * 2 * d.keyLength * sizeof(float); }
uint64_t dotBytes(const DeltaNet& d, uint32_t rows) { return uint64_t{d.keyHeads} * rows * 2 * ChunkTokens * sizeof(float); }
uint64_t valueBytes(const DeltaNet& d, uint32_t rows) { return uint64_t{d.valueHeads} * rows * d.valueLength * sizeof(float); }

} // namespace

DeltaNetMixer::DeltaNetMixer(DeltaNetStates states, const Kernels& kernels, ThreadPool& pool)
    : states_(std::move(states)), kernels_(&kernels), deltaNet_(&deltaNetKernels(kernels.isa)), pool_(&pool) {}

Result<DeltaNetMixer> DeltaNetMixer::create(DeltaNetStates states, uint32_t batchRows, const Kernels& kernels, ThreadPool& pool) {
  DeltaNetMixer out(std::move(states), kernels, pool);
  const DeltaNet most = largest(out.states_.layers());
  for (const auto& [region, bytes] : {std::pair{&out.pairs_, pairBytes(most, batchRows)}, {&out.dots_, dotBytes(most, batchRows)}, {&out.values_, valueBytes(most, batchRows)}}) {
    auto reserved = Region::reserve(bytes, "scratch memory");
    if (!reserved) return reserved.error();
    *region = std::move(*reserved);
  }
  out.batchRows_ = batchRows;
  const uint32_t length = std::max(most.keyLength, most.valueLength);
  out.zeros_.resize(length);
  out.scratch_.resize(pool.size());
  for (Scratch& scratch : out.scratch_) {
    scratch.seen.resize(size_t{2} * ChunkTokens * most.valueLength);
    scratch.sums.resize(size_t{ChunkTokens} * most.valueLength);
    scratch.keyWeights.resize(ChunkTokens * ChunkTokens);
    scratch.queryWeights.resize(ChunkTokens * ChunkTokens);
    scratch.scaledKeys.resize(size_t{most.keyLength} * ChunkTokens);
    scratch.exponents.resize(ChunkTokens);
    scratch.inputs.resize(most.convolution - 1 + ChunkTokens);
  }
  return out;
}

uint64_t DeltaNetMixer::scratchBytes(std::span<const DeltaNet> layers, uint32_t batchRows) {
  const DeltaNet most = largest(layers);
  return pairBytes(most, batchRows) + dotBytes(most, batchRows) + valueBytes(most, batchRows);
}

uint32_t DeltaNetMixer::keyHeadOf(uint32_t valueHead) const {
  return shape_.headMap == model::HeadMap::Tiled ? valueHead % shape_.keyHeads : valueHead / (shape_.valueHeads / shape_.keyHeads);
}

/// The `index`th value head of a key head.
uint32_t DeltaNetMixer::valueHeadOf(uint32_t keyHead, uint32_t index) const {
  return shape_.headMap == model::HeadMap::Tiled ? keyHead + index * shape_.keyHeads : keyHead * (shape_.valueHeads / shape_.keyHeads) + index;
}

float* DeltaNetMixer::pairs(uint32_t keyHead, size_t row) const { return pairs_.as<float>() + (size_t{keyHead} * batchRows_ + row) * 2 * shape_.keyLength; }
float* DeltaNetMixer::dots(uint32_t keyHead, size_t row) const { return dots_.as<float>() + (size_t{keyHead} * batchRows_ + row) * 2 * ChunkTokens; }
float* DeltaNetMixer::values(uint32_t valueHead, size_t row) const { return values_.as<float>() + (size_t{valueHead} * batchRows_ + row) * shape_.valueLength; }

void DeltaNetMixer::begin(std::span<const model::RowRange> ranges) {
  for (auto& wave : waves_) wave.clear();
  waveCount_ = 0;
  for (const model::RowRange& range : ranges) {
    size_t wave = 0;
    for (uint32_t done = 0; done < range.rows; ++wave) {
      const uint32_t position = range.position + done;
      const uint32_t rows = std::min(range.rows - done, ChunkTokens - position % ChunkTokens);
      if (wave == waves_.size()) waves_.emplace_back();
      waves_[wave].push_back({range.state, range.firstRow + done, rows, position, range.firstRow, done + rows == range.rows});
      done += rows;
    }
    waveCount_ = std::max(waveCount_, wave);
  }
}

void DeltaNetMixer::run(const DeltaNetRows& rows) {
  shape_ = states_.layers()[rows.layer];
  for (size_t wave = 0; wave < waveCount_; ++wave)
    if (waves_[wave].size() * shape_.keyHeads >= pool_->size())
      runByKeyHeads(rows, waves_[wave]);
    else
      runByHeads(rows, waves_[wave]);
}

/// A key head with its value heads after the other, whose values then stay in a core's cache.
void DeltaNetMixer::runByKeyHeads(const DeltaNetRows& rows, std::span<const Piece> pieces) {
  const uint32_t group = shape_.valueHeads / shape_.keyHeads;
  pool_->parallelFor(pieces.size() * shape_.keyHeads, 1, [&](size_t begin, size_t end, unsigned worker) {
    for (size_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[i / shape_.keyHeads];
      const auto head = static_cast<uint32_t>(i % shape_.keyHeads);
      keyHead(rows, piece, head, scratch_[worker]);
      for (uint32_t of = 0; of < group; ++of) {
        valueHead(rows, piece, valueHeadOf(head, of), scratch_[worker]);
        mix(rows, piece, valueHeadOf(head, of), scratch_[worker]);
      }
    }
  });
}

/// More threads than key heads.
void DeltaNetMixer::runByHeads(const DeltaNetRows& rows, std::span<const Piece> pieces) {
  const size_t heads = shape_.keyHeads + shape_.valueHeads;
  pool_->parallelFor(pieces.size() * heads, 1, [&](size_t begin, size_t end, unsigned worker) {
    for (size_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[i / heads];
      const auto head = static_cast<uint32_t>(i % heads);
      if (head < shape_.keyHeads)
        keyHead(rows, piece, head, scratch_[worker]);
      else
        valueHead(rows, piece, head - shape_.keyHeads, scratch_[worker]);
    }
  });
  pool_->parallelFor(pieces.size() * shape_.valueHeads, 1, [&](size_t begin, size_t end, unsigned worker) {
    for (size_t i = begin; i < end; ++i) mix(rows, pieces[i / shape_.valueHeads], static_cast<uint32_t>(i % shape_.valueHeads), scratch_[worker]);
  });
}

/// One head's channels of the piece's rows, into rows of `stride`; `channel` is the first of them.
void DeltaNetMixer::convolve(const DeltaNetRows& rows, const Piece& piece, const DeltaNetInput& input, uint32_t head, size_t channel, size_t length,
                             Scratch& scratch, float* out, size_t stride) const {
  const float* const kept = states_.layer(piece.state, rows.layer).inputs;
  const size_t width = shape_.convolutionWidth(), keptRows = DeltaNetStates::inputRows(shape_), before = shape_.convolution - 1;
  for (size_t i = 0; i < before + piece.rows; ++i) {
    const int64_t position = int64_t{piece.position} + static_cast<int64_t>(i) - static_cast<int64_t>(before);
    const int64_t at = int64_t{piece.row} + static_cast<int64_t>(i) - static_cast<int64_t>(before);
    scratch.inputs[i] = position < 0           ? zeros_.data()
                        : at >= piece.rangeRow ? input.at(static_cast<size_t>(at), head)
                                               : kept + static_cast<size_t>(position) % keptRows * width + channel;
  }
  for (size_t i = 0; i < piece.rows; ++i) {
    if (i + RowsAhead < piece.rows) prefetch(scratch.inputs[before + i + RowsAhead], length);
    deltaNet_->convolve(scratch.inputs.data() + i, rows.taps + channel, width, shape_.convolution, out + i * stride, length);
  }
}

void DeltaNetMixer::keyHead(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch) {
  const size_t length = shape_.keyLength, queryChannel = head * length, keyChannel = shape_.keyHeads * length + head * length;
  const float scale = 1 / std::sqrt(static_cast<float>(length)); // of the result; the query carries it
  float* const keys = states_.layer(piece.state, rows.layer).keys + head * length * ChunkTokens;
  convolve(rows, piece, rows.key, head, keyChannel, length, scratch, pairs(head, piece.row), 2 * length);
  convolve(rows, piece, rows.query, head, queryChannel, length, scratch, pairs(head, piece.row) + length, 2 * length);
  for (uint32_t i = 0; i < piece.rows; ++i) {
    float* const key = pairs(head, piece.row + i);
    deltaNet_->normalise(1, rows.epsilon, key, length);
    deltaNet_->normalise(scale, rows.epsilon, key + length, length);
  }
  deltaNet_->transpose(pairs(head, piece.row), 2 * length, piece.rows, length, keys + piece.from(), ChunkTokens);
  for (uint32_t i = 0; i < piece.rows; i += PanelRows) {
    const uint32_t panel = std::min(PanelRows, piece.rows - i);
    float* const out = dots(head, piece.row + i);
    std::fill_n(out, size_t{2} * panel * ChunkTokens, 0.0f);
    deltaNet_->multiplyAdd(pairs(head, piece.row + i), length, keys, ChunkTokens, out, ChunkTokens, size_t{2} * panel, length, wholeUnits(piece.from() + i + panel));
  }
}

void DeltaNetMixer::valueHead(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch) {
  const size_t length = shape_.valueLength, channel = size_t{2} * shape_.keyHeads * shape_.keyLength + head * length;
  convolve(rows, piece, rows.value, head, channel, length, scratch, values(head, piece.row), length);
}

void DeltaNetMixer::mix(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch) {
  const size_t length = shape_.valueLength;
  const DeltaNetStates::Layer layer = states_.layer(piece.state, rows.layer);
  seeState(rows, piece, head, scratch);
  weigh(rows, piece, head, scratch);
  substitute(piece, layer.values + head * ChunkTokens * length, length, scratch);
  for (uint32_t i = 0; i < piece.rows; ++i) {
    const size_t row = piece.row + i;
    if (i + RowsAhead < piece.rows) prefetch(rows.gate.at(row + RowsAhead, head), length);
    deltaNet_->gatedNorm(scratch.sums.data() + i * length, rows.epsilon, rows.norm, rows.gate.at(row, head), rows.out + (row * shape_.valueHeads + head) * length, length);
  }
  if (piece.to() == ChunkTokens) finishChunk(rows, piece, head, scratch);
  if (!piece.last) return;
  const size_t keyLength = shape_.keyLength;
  keepInputs(rows, piece, rows.value, head, 2 * shape_.keyHeads * keyLength + head * length, length);
  const uint32_t keyHead = keyHeadOf(head);
  if (head != valueHeadOf(keyHead, 0)) return;
  keepInputs(rows, piece, rows.query, keyHead, keyHead * keyLength, keyLength);
  keepInputs(rows, piece, rows.key, keyHead, (shape_.keyHeads + keyHead) * keyLength, keyLength);
}

/// What every row's key and query see of the chunk's first state.
void DeltaNetMixer::seeState(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch) {
  const size_t length = shape_.valueLength, keyLength = shape_.keyLength, count = size_t{2} * piece.rows;
  std::fill_n(scratch.seen.data(), count * length, 0.0f);
  if (piece.first()) return;
  const float* const sums = states_.layer(piece.state, rows.layer).sums + head * keyLength * length;
  deltaNet_->multiplyAdd(pairs(keyHeadOf(head), piece.row), keyLength, sums, length, scratch.seen.data(), length, count, keyLength, length);
}

/// The rows' decay, the weights of every earlier token of the chunk, and what the chunk's first state contributes.
void DeltaNetMixer::weigh(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch) {
  const DeltaNetStates::Layer layer = states_.layer(piece.state, rows.layer);
  const size_t length = shape_.valueLength;
  double* const decays = layer.decays + head * ChunkTokens;
  float* const added = layer.values + head * ChunkTokens * length;
  for (uint32_t i = 0; i < piece.rows; ++i) {
    const size_t row = piece.row + i, at = piece.from() + i;
    const float beta = sigmoid(*rows.beta.at(row, head));
    const double g = static_cast<double>(softplus(*rows.alpha.at(row, head) + rows.timeBias[head])) * rows.decay[head];
    decays[at] = (at == 0 ? 0 : decays[at - 1]) + std::max(g, -1000.0);
    const float* const products = dots(keyHeadOf(head), row);
    deltaNet_->decay(decays, decays[at], -beta, products, products + ChunkTokens, scratch.keyWeights.data() + i * ChunkTokens,
                     scratch.queryWeights.data() + i * ChunkTokens, wholeUnits(at + 1));
    const float* const seenByKey = scratch.seen.data() + 2 * i * length;
    deltaNet_->correct(beta, exponential(decays[at]), values(head, row), seenByKey, seenByKey + length, added + at * length, scratch.sums.data() + i * length, length);
  }
}

/// Turns the rows' values into what they add to the state, one row after the other, and sums up what every row sees of them.
void DeltaNetMixer::substitute(const Piece& piece, float* values, size_t length, Scratch& scratch) const {
  const auto add = [&](const float* weights, size_t first, float* into, size_t rows, size_t inner) {
    deltaNet_->multiplyAdd(weights + first, ChunkTokens, values + first * length, length, into, length, rows, inner, length);
  };
  for (uint32_t i = 0; i < piece.rows; i += PanelRows) {
    const uint32_t panel = std::min(PanelRows, piece.rows - i);
    const size_t first = piece.from() + i;
    const float* const keyWeights = scratch.keyWeights.data() + i * ChunkTokens;
    const float* const queryWeights = scratch.queryWeights.data() + i * ChunkTokens;
    float* const sums = scratch.sums.data() + i * length;
    add(keyWeights, 0, values + first * length, panel, first);
    for (uint32_t r = 1; r < panel; ++r) add(keyWeights + r * ChunkTokens, first, values + (first + r) * length, 1, r);
    add(queryWeights, 0, sums, panel, first);
    for (uint32_t r = 0; r < panel; ++r) add(queryWeights + r * ChunkTokens, first, sums + r * length, 1, r + 1);
  }
}

void DeltaNetMixer::finishChunk(const DeltaNetRows& rows, const Piece& piece, uint32_t head, Scratch& scratch) {
  const DeltaNetStates::Layer layer = states_.layer(piece.state, rows.layer);
  const size_t keyLength = shape_.keyLength, length = shape_.valueLength;
  const double* const decays = layer.decays + head * ChunkTokens;
  const double whole = decays[ChunkTokens - 1];
  for (size_t j = 0; j < ChunkTokens; ++j) scratch.exponents[j] = exponential(whole - decays[j]);
  const float* const keys = layer.keys + keyHeadOf(head) * keyLength * ChunkTokens;
  float* const sums = layer.sums + head * keyLength * length;
  const float left = exponential(whole);
  if (piece.first())
    std::fill_n(sums, keyLength * length, 0.0f);
  else
    deltaNet_->scale(left, sums, keyLength * length);
  const float* const added = layer.values + head * ChunkTokens * length;
  for (size_t d = 0; d < keyLength; ++d) deltaNet_->multiplyEach(keys + d * ChunkTokens, scratch.exponents.data(), scratch.scaledKeys.data() + d * ChunkTokens, ChunkTokens);
  deltaNet_->multiplyAdd(scratch.scaledKeys.data(), ChunkTokens, added, length, sums, length, keyLength, ChunkTokens, length);
}

void DeltaNetMixer::keepInputs(const DeltaNetRows& rows, const Piece& piece, const DeltaNetInput& input, uint32_t head, size_t channel, size_t length) {
  float* const kept = states_.layer(piece.state, rows.layer).inputs;
  const uint32_t keptRows = DeltaNetStates::inputRows(shape_), end = piece.row + piece.rows;
  const uint32_t last = piece.position + piece.rows;
  for (uint32_t back = std::min(keptRows, end - piece.rangeRow); back > 0; --back)
    std::copy_n(input.at(end - back, head), length, kept + size_t{(last - back) % keptRows} * shape_.convolutionWidth() + channel);
}

} // namespace mashbox::cpu
