#include "cpu/backend.hpp"

#include "cpu/backend_attend.hpp"
#include "cpu/backend_rows.hpp"
#include "model/tensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
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

struct Matrix {
  const gguf::Tensor* tensor;
  size_t rowBytes;
  std::vector<float> vector; ///< the values of a tensor of rank 1

  quant::Type type() const { return tensor->format->type; }
  size_t rows() const { return tensor->dims[1]; }
  size_t units() const { return (rows() + UnitRows - 1) / UnitRows; }
};

class CpuDevice final : public model::Device {
public:
  CpuDevice(Isa isa, unsigned threads) : kernels_(kernels(isa)), threads_(threads == 0 ? availableCores() : threads) {}

  Result<Weight> place(const gguf::Tensor& tensor) override {
    matrices_.push_back({&tensor, tensor.rowBytes(), tensor.rank == 1 ? model::vectorValues(tensor) : std::vector<float>()});
    return Weight{static_cast<uint32_t>(matrices_.size() - 1)};
  }
  uint64_t blockBytes(const model::BackendShape& shape) const override { return cacheShape(shape).blockBytes(); }
  uint64_t availableMemory() const override { return cpu::availableMemory(); }
  Result<std::unique_ptr<model::Backend>> open(const model::BackendShape& shape) const override;

  const Kernels& tier() const { return kernels_; }
  const Matrix& matrix(Weight weight) const { return matrices_[static_cast<uint32_t>(weight)]; }
  const float* vector(Weight weight) const { return weight == Weight::None ? nullptr : matrix(weight).vector.data(); }

private:
  static KvCache::Shape cacheShape(const model::BackendShape& shape) {
    return {shape.layers, shape.kvHeads, shape.keyLength, shape.valueLength, shape.kvType == model::KvType::F16};
  }

  const Kernels& kernels_;
  unsigned threads_;
  std::vector<Matrix> matrices_;
};

class CpuBackend final : public model::Backend {
public:
  CpuBackend(const CpuDevice& device, const model::BackendShape& shape, KvCache cache, unsigned threads)
      : device_(device), kernels_(device.tier()), batchRows_(shape.batchRows), pool_(threads), attender_(shape, std::move(cache), kernels_, pool_),
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
  }

  void embed(Weight table, Buffer out) override {
    const Matrix& matrix = device_.matrix(table);
    Rows& rows = buffer(out);
    rows.write();
    forRows(pool_, tokens_.size(), rows.width(), [&](size_t row) {
      quant::dequantize(matrix.type(), matrix.tensor->data + static_cast<size_t>(tokens_[row]) * matrix.rowBytes, {rows.row(row), rows.width()});
    });
  }

  void rmsNorm(uint32_t rows, Buffer in, Weight weight, float epsilon, Buffer out) override {
    const Rows& from = buffer(in);
    Rows& to = buffer(out);
    to.write();
    const float* factors = device_.vector(weight);
    forRows(pool_, rows, from.width(), [&](size_t row) { kernels_.rmsNorm(from.row(row), factors, epsilon, to.row(row), from.width()); });
  }

  void project(uint32_t rows, Buffer in, std::span<const Projection> projections) override {
    bool int8 = false;
    size_t units = 0, unitBytes = 1;
    for (const Projection& projection : projections) {
      const Matrix& matrix = device_.matrix(projection.weight);
      int8 = int8 || usesInt8(matrix.type());
      units += matrix.units();
      unitBytes = std::max(unitBytes, matrix.rowBytes * UnitRows);
      buffer(projection.out).write();
    }
    const Activations x = buffer(in).activations(rows, int8, kernels_, pool_);
    pool_.parallelFor(units, grain(units, unitBytes, rows), [&](size_t begin, size_t end, unsigned worker) {
      size_t first = 0;
      for (const Projection& projection : projections) {
        const Matrix& matrix = device_.matrix(projection.weight);
        const size_t last = first + matrix.units();
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

  void projectGated(uint32_t rows, Buffer in, const Projection& gate, const Projection& up) override {
    const Matrix& gateMatrix = device_.matrix(gate.weight);
    const Matrix& upMatrix = device_.matrix(up.weight);
    const Activations x = buffer(in).activations(rows, usesInt8(gateMatrix.type()) || usesInt8(upMatrix.type()), kernels_, pool_);
    float* const gated = buffer(gate.out).write();
    float* const ups = buffer(up.out).write();
    const size_t width = gateMatrix.rows();
    const size_t unitBytes = UnitRows * (gateMatrix.rowBytes + upMatrix.rowBytes);
    pool_.parallelFor(gateMatrix.units(), grain(gateMatrix.units(), unitBytes, rows), [&](size_t begin, size_t end, unsigned) {
      const size_t from = begin * UnitRows, to = std::min(end * UnitRows, width);
      multiply(gate, gateMatrix, x, from, to, gated + from, width);
      multiply(up, upMatrix, x, from, to, ups + from, width);
      for (size_t row = 0; row < rows; ++row) {
        float* const out = gated + row * width + from;
        kernels_.siluMul(out, ups + row * width + from, out, to - from);
      }
    });
  }

  void attend(const model::Attention& attention) override {
    buffer(attention.out).write();
    attender_.run({attention.layer, buffer(attention.query).write(), buffer(attention.key).write(), buffer(attention.value).data(),
                   device_.vector(attention.queryNorm), device_.vector(attention.keyNorm), attention.epsilon, attention.scale,
                   buffer(attention.out).data()});
  }

  void selectRows(std::span<const uint32_t> rows, Buffer in, Buffer out) override {
    const Rows& from = buffer(in);
    Rows& to = buffer(out);
    to.write();
    for (size_t i = 0; i < rows.size(); ++i)
      if (from.row(rows[i]) != to.row(i)) std::copy_n(from.row(rows[i]), from.width(), to.row(i));
  }

  Result<std::span<const float>> logits(uint32_t rows, Buffer in, const Projection& head, uint32_t tokens) override {
    const Matrix& matrix = device_.matrix(head.weight);
    const size_t width = matrix.rows();
    const uint64_t bytes = uint64_t{rows} * width * sizeof(float);
    if (logits_.bytes() < bytes) {
      auto region = Region::reserve(bytes, "logits");
      if (!region) return region.error();
      logits_ = std::move(*region);
    }
    float* const out = logits_.as<float>();
    const Activations x = buffer(in).activations(rows, usesInt8(matrix.type()), kernels_, pool_);
    pool_.parallelFor(matrix.units(), grain(matrix.units(), matrix.rowBytes * UnitRows, rows), [&](size_t begin, size_t end, unsigned) {
      const size_t from = begin * UnitRows, to = std::min(end * UnitRows, width);
      multiply(head, matrix, x, from, to, out + from, width);
    });
    for (size_t row = 0; row < rows; ++row) std::fill(out + row * width + tokens, out + (row + 1) * width, -std::numeric_limits<float>::infinity());
    return std::span<const float>(out, rows * width);
  }

private:
  Rows& buffer(Buffer id) { return buffers_[static_cast<uint32_t>(id)]; }

  /// Units of one piece of work.
  size_t grain(size_t units, size_t unitBytes, size_t rows) const {
    constexpr size_t PiecesPerThread = 4;
    if (rows >= LayoutRows) return std::max<size_t>(1, units / (PiecesPerThread * pool_.size()));
    return std::max<size_t>(1, GrainBytes / unitBytes);
  }

  /// Outputs [from, to) of every row; `out` is the place of output `from` of row 0.
  void multiply(const Projection& projection, const Matrix& matrix, const Activations& x, size_t from, size_t to, float* out, size_t stride) const {
    kernels_.matmulRows(matrix.type(), matrix.tensor->data + from * matrix.rowBytes, matrix.rowBytes, to - from, x, out, stride);
    const float* bias = device_.vector(projection.bias);
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

  const CpuDevice& device_;
  const Kernels& kernels_;
  const uint32_t batchRows_;
  ThreadPool pool_;
  Attender attender_;
  std::vector<std::vector<float>> addTiles_; ///< one per worker
  std::vector<Rows> buffers_;
  std::vector<int32_t> tokens_;
  Region logits_;
};

Result<std::unique_ptr<model::Backend>> CpuDevice::open(const model::BackendShape& shape) const {
  auto cache = KvCache::create(cacheShape(shape), shape.blocks, kernels_);
  if (!cache) return cache.error();
  return std::unique_ptr<model::Backend>(std::make_unique<CpuBackend>(*this, shape, std::move(*cache), threads_));
}

} // namespace

std::unique_ptr<model::Device> createDevice(Isa isa, unsigned threads) { return std::make_unique<CpuDevice>(isa, threads); }

} // namespace mashbox::cpu
