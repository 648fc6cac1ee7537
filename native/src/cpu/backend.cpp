#include "cpu/backend.hpp"

#include "cpu/backend_attend.hpp"
#include "cpu/backend_delta_net_layer.hpp"
#include "cpu/backend_experts_layer.hpp"
#include "cpu/backend_rows.hpp"
#include "cpu/backend_weights.hpp"
#include "cpu/tiers.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <optional>
#include <vector>

namespace mashbox::cpu {
namespace {

using model::Buffer;
using model::Projection;
using model::Weight;

/// Output rows of a linear layer are handed out in units of 16.
constexpr size_t UnitRows = 16;
/// Weight bytes that are worth another thread's attention.
constexpr size_t GrainBytes = 16384;
/// From so many rows on, kernels first lay out the activations, which pays off over many outputs per call.
constexpr size_t LayoutRows = 8;
/// Outputs that are added to a buffer pass through a tile of this width.
constexpr size_t AddWidth = 128;

size_t units(const Matrix& matrix) { return (matrix.rows() + UnitRows - 1) / UnitRows; }

class CpuDevice final : public model::Device {
public:
  CpuDevice(Isa isa, unsigned threads) : kernels_(kernels(isa)), threads_(threads == 0 ? availableCores() : threads) {}

  Result<Weight> place(const gguf::Tensor& tensor) override { return weights_.place(tensor); }
  Result<Weight> placeStack(std::span<const gguf::Tensor* const> matrices) override { return weights_.placeStack(matrices); }
  model::BlockBytes blockBytes(const model::BackendShape& shape) const override {
    const bool half = shape.kvType == model::KvType::F16;
    return {KvCache::blockBytes(Attender::cacheLayers(shape, false), half), KvCache::blockBytes(Attender::cacheLayers(shape, true), half)};
  }
  uint64_t stateBytes(const model::BackendShape& shape) const override { return DeltaNetStates::stateBytes(DeltaNetLayers::shapesOf(shape)); }
  uint64_t availableMemory() const override { return cpu::availableMemory(); }
  Result<std::unique_ptr<model::Backend>> open(const model::BackendShape& shape) const override;

  const Kernels& tier() const { return kernels_; }
  const MatrixStore& weights() const { return weights_; }

private:
  const Kernels& kernels_;
  unsigned threads_;
  MatrixStore weights_;
};

class CpuBackend final : public model::Backend {
public:
  CpuBackend(const CpuDevice& device, const model::BackendShape& shape, KvCache cache, KvCache windows, unsigned threads)
      : weights_(device.weights()), kernels_(device.tier()), batchRows_(shape.batchRows), pool_(threads), attender_(shape, std::move(cache), std::move(windows), kernels_, pool_),
        addTiles_(pool_.size(), std::vector<float>(AddWidth * shape.batchRows)) {}

  Result<Buffer> allocate(uint32_t width) override {
    auto rows = Rows::create(batchRows_, width);
    if (!rows) return rows.error();
    buffers_.push_back(std::move(*rows));
    return Buffer{static_cast<uint32_t>(buffers_.size() - 1)};
  }

  void begin(const model::Batch& batch) override {
    tokens_.assign(batch.tokens.begin(), batch.tokens.end());
    attender_.begin(batch.ranges);
    if (deltaNet_) deltaNet_->begin(batch.ranges);
  }

  void embed(Weight table, float scale, Buffer out) override {
    const Matrix& matrix = weights_.matrix(table);
    Rows& rows = buffer(out);
    rows.write(matrix.inputs());
    forRows(pool_, tokens_.size(), rows.width(), [&](size_t row) {
      float* const values = rows.row(row);
      tableRow(matrix, tokens_[row], values);
      for (size_t i = 0; scale != 1 && i < rows.width(); ++i) values[i] *= scale;
    });
  }

  void perLayerEmbeddings(const model::PerLayerCall& call) override {
    const Matrix& table = weights_.matrix(call.table);
    const Matrix& norm = weights_.matrix(call.norm);
    const size_t length = norm.inputs();
    Rows& rows = buffer(call.values);
    rows.write();
    pool_.parallelFor(tokens_.size(), 1, [&](size_t begin, size_t end, unsigned) {
      auto* const own = reinterpret_cast<float*>(threadScratch(rows.width() * sizeof(float)));
      for (size_t row = begin; row < end; ++row) {
        float* const values = rows.row(row);
        tableRow(table, tokens_[row], own);
        for (size_t at = 0; at < rows.width(); at += length) {
          kernels_.rmsNorm(values + at, norm.vector.data(), call.epsilon, values + at, length);
          for (size_t i = at; i < at + length; ++i) values[i] = (values[i] + call.tokenScale * own[i]) * call.scale;
        }
      }
    });
  }

  void rmsNorm(uint32_t rows, Buffer in, Weight weight, float epsilon, Buffer out, float scale) override {
    const Rows& from = buffer(in);
    Rows& to = buffer(out);
    to.write(from.width());
    const float* factors = norm(weight, from.width());
    forRows(pool_, rows, from.width(), [&](size_t row) {
      float* const values = to.row(row);
      kernels_.rmsNorm(from.row(row), factors, epsilon, values, from.width());
      for (size_t i = 0; scale != 1 && i < to.width(); ++i) values[i] *= scale;
    });
  }

  void addNormed(uint32_t rows, Buffer in, Weight weight, float epsilon, float scale, Buffer out) override {
    Rows& from = buffer(in);
    Rows& to = buffer(out);
    from.write();
    to.write();
    const float* factors = norm(weight, from.width());
    forRows(pool_, rows, from.width(), [&](size_t row) {
      float *const normed = from.row(row), *const sum = to.row(row);
      kernels_.rmsNorm(normed, factors, epsilon, normed, from.width());
      for (size_t i = 0; i < to.width(); ++i) sum[i] = (sum[i] + normed[i]) * scale;
    });
  }

  void project(uint32_t rows, Buffer in, std::span<const Projection> projections) override {
    bool int8 = false;
    size_t count = 0, unitBytes = 1;
    for (const Projection& projection : projections) {
      const Matrix& matrix = weights_.matrix(projection.weight);
      int8 = int8 || usesInt8(matrix.type());
      count += units(matrix);
      unitBytes = std::max(unitBytes, matrix.rowBytes * UnitRows);
      buffer(projection.out).write(matrix.rows());
    }
    const Activations x = buffer(in).activations(rows, int8, kernels_, pool_);
    pool_.parallelFor(count, grain(count, unitBytes, rows), [&](size_t begin, size_t end, unsigned worker) {
      size_t first = 0;
      for (const Projection& projection : projections) {
        const Matrix& matrix = weights_.matrix(projection.weight);
        const size_t last = first + units(matrix);
        if (begin < last && end > first) {
          const size_t from = (std::max(begin, first) - first) * UnitRows;
          const size_t to = std::min((std::min(end, last) - first) * UnitRows, matrix.rows());
          if (projection.add)
            addProjection(projection, matrix, x, from, to, addTiles_[worker].data());
          else
            multiply(projection, matrix, x, from, to, buffer(projection.out).data() + from, buffer(projection.out).width());
        }
        first = last;
      }
    });
  }

  void projectGated(uint32_t rows, Buffer in, model::Activation activation, const Projection& gate, const Projection& up) override {
    const Matrix& gateMatrix = weights_.matrix(gate.weight);
    const Matrix& upMatrix = weights_.matrix(up.weight);
    const Activations x = buffer(in).activations(rows, usesInt8(gateMatrix.type()) || usesInt8(upMatrix.type()), kernels_, pool_);
    const size_t width = gateMatrix.rows();
    float* const gated = buffer(gate.out).write(width);
    float* const ups = buffer(up.out).write(width);
    const auto multiplyGate = gateKernel(activation);
    const size_t unitBytes = UnitRows * (gateMatrix.rowBytes + upMatrix.rowBytes);
    pool_.parallelFor(units(gateMatrix), grain(units(gateMatrix), unitBytes, rows), [&](size_t begin, size_t end, unsigned) {
      const size_t from = begin * UnitRows, to = std::min(end * UnitRows, width);
      multiply(gate, gateMatrix, x, from, to, gated + from, width);
      multiply(up, upMatrix, x, from, to, ups + from, width);
      for (size_t row = 0; row < rows; ++row) {
        float* const out = gated + row * width + from;
        multiplyGate(out, ups + row * width + from, out, to - from);
      }
    });
  }

  void multiplyGated(uint32_t rows, Buffer gate, model::Activation activation, Buffer other, uint32_t column) override {
    Rows& gates = buffer(gate);
    const Rows& others = buffer(other);
    gates.write();
    const auto multiplyGate = gateKernel(activation);
    forRows(pool_, rows, gates.width(), [&](size_t row) { multiplyGate(gates.row(row), others.row(row) + column, gates.row(row), gates.width()); });
  }

  void attend(const model::AttentionCall& call) override {
    const model::Attention& attention = call.attention;
    float* const value = buffer(call.value).write(size_t{attention.kvHeads} * attention.valueLength);
    float* const out = buffer(call.out).write(size_t{attention.heads} * attention.valueLength);
    attender_.run({call.layer, buffer(call.query).write(), buffer(call.key).write(), value, buffer(call.gate).data(), weights_.vector(call.queryNorm),
                   weights_.vector(call.keyNorm), weights_.vector(call.sinks), call.epsilon, out});
  }

  void experts(const model::ExpertsCall& call) override {
    const model::ExpertsWeights& weights = call.weights;
    project(call.rows, call.routerIn, std::array{weights.router.into(routerLogits_)});
    const bool gated = weights.sharedRouter.weight != Weight::None;
    if (gated) project(call.rows, call.in, std::array{weights.sharedRouter.into(sharedLogits_)});
    experts_->run(expertLayer(call.experts, weights, weights_), call.rows, buffer(routerLogits_).data(), gated ? buffer(sharedLogits_).data() : nullptr,
                  buffer(call.in), buffer(call.out), call.add);
  }

  void deltaNet(const model::DeltaNetCall& call) override {
    project(call.rows, call.in, deltaNetProjections(call.weights, deltaNetBuffers_));
    const auto& [mixed, gate, beta, alpha] = deltaNetBuffers_;
    float* const out = buffer(call.out).write(size_t{call.deltaNet.valueHeads} * call.deltaNet.valueLength);
    deltaNet_->run(call, weights_, {buffer(mixed).data(), buffer(gate).data(), buffer(beta).data(), buffer(alpha).data()}, out);
  }

  std::vector<std::byte> saveState(kv::StateId state, uint32_t length) const override { return deltaNet_ ? deltaNet_->states().save(state, length) : std::vector<std::byte>(); }
  Result<uint32_t> loadState(std::span<const std::byte> bytes, kv::StateId state) override { return deltaNet_->states().load(bytes, state); }

  void selectRows(std::span<const uint32_t> rows, Buffer in, Buffer out) override {
    const Rows& from = buffer(in);
    Rows& to = buffer(out);
    to.write(from.width());
    for (size_t i = 0; i < rows.size(); ++i)
      if (from.row(rows[i]) != to.row(i)) std::copy_n(from.row(rows[i]), from.width(), to.row(i));
  }

  Result<std::span<const float>> logits(uint32_t rows, Buffer in, const Projection& head, float softcap, uint32_t tokens) override {
    const Matrix& matrix = weights_.matrix(head.weight);
    const size_t width = matrix.rows();
    const uint64_t bytes = uint64_t{rows} * width * sizeof(float);
    if (logits_.bytes() < bytes) {
      auto region = Region::reserve(bytes, "logits");
      if (!region) return region.error();
      logits_ = std::move(*region);
    }
    float* const out = logits_.as<float>();
    const Activations x = buffer(in).activations(rows, usesInt8(matrix.type()), kernels_, pool_);
    pool_.parallelFor(units(matrix), grain(units(matrix), matrix.rowBytes * UnitRows, rows), [&](size_t begin, size_t end, unsigned) {
      const size_t from = begin * UnitRows, to = std::min(end * UnitRows, width);
      multiply(head, matrix, x, from, to, out + from, width);
      for (size_t row = 0; softcap != 0 && row < rows; ++row) kernels_.softcap(out + row * width + from, softcap, to - from);
    });
    for (size_t row = 0; row < rows; ++row) std::fill(out + row * width + tokens, out + (row + 1) * width, -std::numeric_limits<float>::infinity());
    return std::span<const float>(out, rows * width);
  }

  /// States and scratch memory of the delta net layers.
  Result<void> prepareDeltaNet(const model::BackendShape& shape) {
    auto layers = DeltaNetLayers::create(shape, kernels_, pool_);
    if (!layers) return layers.error();
    deltaNet_ = std::move(*layers);
    if (!deltaNet_) return {};
    const auto widths = DeltaNetLayers::widths(shape);
    for (const auto& [id, width] : {std::pair{&deltaNetBuffers_.mixed, widths.mixed}, {&deltaNetBuffers_.gate, widths.gate},
                                    {&deltaNetBuffers_.beta, widths.beta}, {&deltaNetBuffers_.alpha, widths.alpha}}) {
      const auto allocated = allocate(width);
      if (!allocated) return allocated.error();
      *id = *allocated;
    }
    return {};
  }

  /// Scratch memory of the layers with experts.
  Result<void> prepareExperts(const ExpertCapacity& capacity) {
    if (capacity.used == 0) return {};
    auto runner = ExpertRunner::create(capacity, kernels_, pool_);
    if (!runner) return runner.error();
    experts_ = std::move(*runner);
    const auto router = allocate(capacity.experts), shared = allocate(1);
    if (!router) return router.error();
    if (!shared) return shared.error();
    routerLogits_ = *router;
    sharedLogits_ = *shared;
    return {};
  }

private:
  Rows& buffer(Buffer id) { return buffers_[static_cast<uint32_t>(id)]; }

  static void tableRow(const Matrix& table, int32_t token, float* out) {
    quant::dequantize(table.type(), table.tensor->data + static_cast<size_t>(token) * table.rowBytes, {out, table.inputs()});
  }

  /// The weights of a norm; ones for None.
  const float* norm(Weight weight, size_t width) {
    if (const float* factors = weights_.vector(weight)) return factors;
    if (ones_.size() < width) ones_.resize(width, 1);
    return ones_.data();
  }

  auto gateKernel(model::Activation activation) const -> decltype(Kernels::siluMul) {
    return activation == model::Activation::Gelu ? kernels_.geluMul : kernels_.siluMul;
  }

  /// Units of one piece of work.
  size_t grain(size_t units, size_t unitBytes, size_t rows) const {
    constexpr size_t PiecesPerThread = 4;
    if (rows >= LayoutRows) return std::max<size_t>(1, units / (PiecesPerThread * pool_.size()));
    return std::max<size_t>(1, GrainBytes / unitBytes);
  }

  /// Outputs [from, to) of every row; `out` is the place of output `from` of row 0.
  void multiply(const Projection& projection, const Matrix& matrix, const Activations& x, size_t from, size_t to, float* out, size_t stride) const {
    kernels_.matmulRows(matrix.type(), matrix.tensor->data + from * matrix.rowBytes, matrix.rowBytes, to - from, x, out, stride);
    const float* bias = weights_.vector(projection.bias);
    if (!bias && projection.scale == 1) return;
    for (size_t row = 0; row < x.rows; ++row)
      for (size_t i = from; i < to; ++i) {
        float& value = out[row * stride + i - from];
        value = value * projection.scale + (bias ? bias[i] : 0);
      }
  }

  void addProjection(const Projection& projection, const Matrix& matrix, const Activations& x, size_t from, size_t to, float* tile) {
    Rows& sum = buffer(projection.out);
    for (size_t start = from; start < to; start += AddWidth) {
      const size_t width = std::min(AddWidth, to - start);
      multiply(projection, matrix, x, start, start + width, tile, AddWidth);
      for (size_t row = 0; row < x.rows; ++row)
        for (size_t i = 0; i < width; ++i) sum.row(row)[start + i] += tile[row * AddWidth + i];
    }
  }

  const MatrixStore& weights_;
  const Kernels& kernels_;
  const uint32_t batchRows_;
  ThreadPool pool_;
  Attender attender_;
  std::optional<DeltaNetLayers> deltaNet_;
  DeltaNetProjections<Buffer> deltaNetBuffers_;
  std::optional<ExpertRunner> experts_;
  Buffer routerLogits_{}, sharedLogits_{};
  std::vector<std::vector<float>> addTiles_; ///< one per worker
  std::vector<Rows> buffers_;
  std::vector<int32_t> tokens_;
  std::vector<float> ones_;
  Region logits_;
};

Result<std::unique_ptr<model::Backend>> CpuDevice::open(const model::BackendShape& shape) const {
  const bool half = shape.kvType == model::KvType::F16;
  auto cache = KvCache::create(Attender::cacheLayers(shape, false), half, shape.blocks, kernels_);
  if (!cache) return cache.error();
  auto windows = KvCache::create(Attender::cacheLayers(shape, true), half, shape.windowBlocks, kernels_);
  if (!windows) return windows.error();
  auto backend = std::make_unique<CpuBackend>(*this, shape, std::move(*cache), std::move(*windows), threads_);
  if (auto prepared = backend->prepareExperts(expertCapacity(shape)); !prepared) return prepared.error();
  if (auto prepared = backend->prepareDeltaNet(shape); !prepared) return prepared.error();
  return std::unique_ptr<model::Backend>(std::move(backend));
}

} // namespace

std::unique_ptr<model::Device> createDevice(Isa isa, unsigned threads) { return std::make_unique<CpuDevice>(isa, threads); }

} // namespace mashbox::cpu
