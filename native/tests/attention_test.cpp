#include "cpu/backend.hpp"
#include "kv/block_pool.hpp"
#include "model/backend.hpp"
#include "model_session.hpp"
#include "test.hpp"

#include <cmath>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using model::Attention;
using model::OutputGate;
using test::check;
using test::Test;

constexpr float Epsilon = 1e-5f;

/// Tensors of float32 values that a device can place.
class Values {
public:
  const std::vector<float>& add(model::Device& device, std::vector<uint64_t> dims, std::vector<float> values, model::Weight& weight) {
    data_.push_back(std::move(values));
    gguf::Tensor& tensor = tensors_.emplace_back();
    tensor = {"t", quant::findFormat(0), static_cast<uint32_t>(dims.size()), {1, 1, 1, 1}, reinterpret_cast<const std::byte*>(data_.back().data()), data_.back().size() * 4};
    std::copy(dims.begin(), dims.end(), tensor.dims.begin());
    weight = test::expect(device.place(tensor));
    return data_.back();
  }

private:
  std::deque<std::vector<float>> data_;
  std::deque<gguf::Tensor> tensors_;
};

struct Shape {
  Attention attention;
  uint32_t rows;
  model::RopePairing pairing;
  uint32_t ropeDims;
};

Shape randomShape(std::mt19937& random) {
  const auto pick = [&](uint32_t least, uint32_t most) { return least + random() % (most - least + 1); };
  Shape shape{};
  Attention& a = shape.attention;
  a.kvHeads = pick(1, 3);
  a.heads = a.kvHeads * pick(1, 4);
  a.keyLength = 2 * pick(2, 20);
  a.gate = static_cast<OutputGate>(pick(0, 3));
  a.valueIsKey = pick(0, 3) == 0;
  a.valueLength = a.valueIsKey || a.gate == OutputGate::Sigmoid ? a.keyLength : pick(3, 40);
  a.window = pick(0, 2) == 0 ? 0 : pick(1, 90);
  a.scale = 1 / std::sqrt(static_cast<float>(a.keyLength));
  a.scoreSoftcap = pick(0, 2) == 0 ? 2.5f : 0;
  a.qkNorm = pick(0, 1) == 0;
  a.valueNorm = pick(0, 2) == 0;
  a.sinks = pick(0, 2) == 0;
  if (pick(0, 4) == 0) a.rope.reset();
  shape.rows = pick(1, 180);
  shape.pairing = pick(0, 1) ? model::RopePairing::Halves : model::RopePairing::Adjacent;
  shape.ropeDims = 2 * pick(1, a.keyLength / 2);
  return shape;
}

std::vector<float> randomValues(size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(count);
  for (float& value : out) value = normal(random);
  return out;
}

/// What one run takes and gives: rows × … as AttentionCall has them.
struct Inputs {
  std::vector<float> query, key, value, gate, queryNorm, keyNorm, sinks;
};

void norm(double* head, const float* weight, size_t n) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += head[i] * head[i];
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + Epsilon);
  for (size_t i = 0; i < n; ++i) head[i] *= scale * (weight ? weight[i] : 1);
}

void turn(double* head, const Shape& shape, uint32_t position) {
  if (!shape.attention.rope) return;
  for (uint32_t i = 0; i < shape.ropeDims / 2; ++i) {
    const double angle = position * std::pow(10000.0, -2.0 * i / shape.ropeDims);
    const bool adjacent = shape.pairing == model::RopePairing::Adjacent;
    double& a = head[adjacent ? 2 * i : i];
    double& b = head[adjacent ? 2 * i + 1 : i + shape.ropeDims / 2];
    const double before = a;
    a = before * std::cos(angle) - b * std::sin(angle);
    b = before * std::sin(angle) + b * std::cos(angle);
  }
}

/// Attention as the formulas say it, in double.
std::vector<double> expected(const Shape& shape, const Inputs& in) {
  const Attention& a = shape.attention;
  std::vector<double> keys(in.key.begin(), in.key.end()), out(size_t{shape.rows} * a.heads * a.valueLength);
  std::vector<double> values(size_t{shape.rows} * a.kvHeads * a.valueLength);
  for (uint32_t row = 0; row < shape.rows; ++row)
    for (uint32_t head = 0; head < a.kvHeads; ++head) {
      double* key = keys.data() + (row * a.kvHeads + head) * a.keyLength;
      double* value = values.data() + (row * a.kvHeads + head) * a.valueLength;
      for (uint32_t i = 0; i < a.valueLength; ++i) value[i] = a.valueIsKey ? key[i] : in.value[(row * a.kvHeads + head) * a.valueLength + i];
      if (a.valueNorm) norm(value, nullptr, a.valueLength);
      if (a.qkNorm) norm(key, in.keyNorm.data(), a.keyLength);
      turn(key, shape, row);
    }
  for (uint32_t row = 0; row < shape.rows; ++row)
    for (uint32_t head = 0; head < a.heads; ++head) {
      const float* given = in.query.data() + (size_t{row} * a.heads + head) * a.queryRows();
      std::vector<double> query(given, given + a.keyLength);
      if (a.qkNorm) norm(query.data(), in.queryNorm.data(), a.keyLength);
      turn(query.data(), shape, row);
      const uint32_t kvHead = head / (a.heads / a.kvHeads);
      double total = a.sinks ? std::exp(static_cast<double>(in.sinks[head])) : 0;
      double* result = out.data() + (size_t{row} * a.heads + head) * a.valueLength;
      for (uint32_t j = a.window && row >= a.window ? row - a.window + 1 : 0; j <= row; ++j) {
        const double* key = keys.data() + (j * a.kvHeads + kvHead) * a.keyLength;
        double score = std::inner_product(query.begin(), query.end(), key, 0.0) * a.scale;
        if (a.scoreSoftcap != 0) score = a.scoreSoftcap * std::tanh(score / a.scoreSoftcap);
        const double weight = std::exp(score);
        total += weight;
        for (uint32_t v = 0; v < a.valueLength; ++v) result[v] += weight * values[(j * a.kvHeads + kvHead) * a.valueLength + v];
      }
      for (uint32_t v = 0; v < a.valueLength; ++v) {
        result[v] /= total;
        if (a.gate == OutputGate::Sigmoid) result[v] /= 1 + std::exp(-static_cast<double>(given[a.keyLength + v]));
        if (a.gate == OutputGate::SoftplusPerHead) result[v] *= std::log1p(std::exp(static_cast<double>(in.gate[size_t{row} * a.heads + head])));
        if (a.gate == OutputGate::SoftplusPerElement)
          result[v] *= std::log1p(std::exp(static_cast<double>(in.gate[(size_t{row} * a.heads + head) * a.valueLength + v])));
      }
    }
  return out;
}

/// The same on a backend, in steps of at most `chunk` rows.
std::vector<float> attend(const Shape& shape, const Inputs& in, cpu::Isa isa, unsigned threads, uint32_t chunk) {
  const Attention& a = shape.attention;
  const auto device = cpu::createDevice(isa, threads);
  Values values;
  const uint32_t out = a.heads * a.valueLength, gates = a.gate == OutputGate::SoftplusPerHead ? a.heads : out;
  const std::vector<std::pair<const std::vector<float>*, uint32_t>> tables = {
      {&in.query, a.heads * a.queryRows()}, {&in.key, a.kvHeads * a.keyLength}, {&in.value, a.kvHeads * a.valueLength}, {&in.gate, gates}};
  std::vector<model::Weight> placed(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) values.add(*device, {tables[i].second, shape.rows}, *tables[i].first, placed[i]);
  model::Weight queryNorm = model::Weight::None, keyNorm = model::Weight::None, sinks = model::Weight::None, identity;
  if (a.qkNorm) values.add(*device, {a.keyLength}, in.queryNorm, queryNorm);
  if (a.qkNorm) values.add(*device, {a.keyLength}, in.keyNorm, keyNorm);
  if (a.sinks) values.add(*device, {a.heads}, in.sinks, sinks);
  std::vector<float> ones(size_t{out} * out);
  for (uint32_t i = 0; i < out; ++i) ones[size_t{i} * out + i] = 1;
  values.add(*device, {out, out}, ones, identity);

  std::vector<model::LayerConfig> layers(1);
  layers[0].attention = a;
  model::Rope rope;
  rope.pairing = shape.pairing;
  rope.dims = shape.ropeDims;
  model::BackendShape backendShape{};
  backendShape.batchRows = chunk;
  backendShape.blocks = 8;
  backendShape.windowBlocks = a.window ? kv::WindowPool::blocksPerSequence(a.window, chunk, 8 * kv::BlockTokens) : 0;
  backendShape.width = out;
  backendShape.layers = layers;
  backendShape.kvType = model::KvType::F32;
  backendShape.rotations = {model::rotationOf(rope, {})};
  const auto backend = test::expect(device->open(backendShape));
  std::vector<model::Buffer> buffers;
  for (const auto& [table, width] : tables) buffers.push_back(test::expect(backend->allocate(width)));
  const auto result = test::expect(backend->allocate(out));

  kv::BlockPool pool = a.window ? kv::BlockPool(8, kv::WindowPool(backendShape.windowBlocks, a.window)) : kv::BlockPool(8);
  kv::Sequence sequence(pool);
  std::vector<int32_t> tokens(shape.rows);
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<float> all;
  for (uint32_t at = 0; at < shape.rows; at += chunk) {
    const uint32_t rows = std::min(chunk, shape.rows - at);
    test::expect(sequence.reserve(rows));
    model::RowRange range{0, rows, at, sequence.blocks()};
    if (sequence.window()) range.window = {sequence.window()->first(), sequence.window()->blocks()};
    backend->begin({std::span(tokens).subspan(at, rows), {&range, 1}});
    for (size_t i = 0; i < buffers.size(); ++i) backend->embed(placed[i], 1, buffers[i]);
    backend->attend({0, a, buffers[0], buffers[1], buffers[2], buffers[3], queryNorm, keyNorm, sinks, Epsilon, result});
    const auto read = test::expect(backend->logits(rows, result, {identity, model::Weight::None, 1, {}, false}, 0, out));
    all.insert(all.end(), read.begin(), read.end());
    sequence.advance(rows);
  }
  return all;
}

const Test shapes{"attention: random shapes equal double arithmetic in every tier; chunks and threads change no bit", [] {
  std::mt19937 random(11);
  const int rounds = test::Sanitized ? 15 : 60;
  for (int round = 0; round < rounds; ++round) {
    const Shape shape = randomShape(random);
    const Attention& a = shape.attention;
    const size_t gates = size_t{a.heads} * (a.gate == OutputGate::SoftplusPerHead ? 1 : a.valueLength);
    const Inputs in{randomValues(size_t{shape.rows} * a.heads * a.queryRows(), random), randomValues(size_t{shape.rows} * a.kvHeads * a.keyLength, random),
                    randomValues(size_t{shape.rows} * a.kvHeads * a.valueLength, random), randomValues(shape.rows * gates, random),
                    randomValues(a.keyLength, random), randomValues(a.keyLength, random), randomValues(a.heads, random)};
    const auto want = expected(shape, in);
    for (const cpu::Isa isa : test::availableTiers()) {
      const std::string what = "round " + std::to_string(round) + " under " + cpu::isaName(isa) + ", window " + std::to_string(a.window);
      const auto got = attend(shape, in, isa, 2, 256);
      check(got.size() == want.size());
      for (size_t i = 0; i < got.size(); ++i) check(std::abs(got[i] - want[i]) <= 2e-5 * (1 + std::abs(want[i])), what + " at " + std::to_string(i));
      check(test::sameBits(attend(shape, in, isa, 1, 1), got), what + ", row by row");
      check(test::sameBits(attend(shape, in, isa, 3, 29), got), what + ", in chunks of 29");
    }
  }
}};

} // namespace
} // namespace mashbox
