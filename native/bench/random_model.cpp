#include "random_model.hpp"

#include "quant/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <span>

namespace mashbox::bench {
namespace {

constexpr uint64_t Alignment = 32;
/// Different rows of a matrix; more of them would only make writing slower.
constexpr uint64_t DifferentRows = 61;

/// One random row. Formats without an encoder get random codes and moderate scales.
std::string randomRow(quant::Type type, uint64_t length, float mean, float deviation, std::mt19937& random) {
  std::string row(quant::rowBytes(quant::format(type), length), '\0');
  if (quant::encodable(type)) {
    std::normal_distribution<float> normal(mean, deviation);
    std::vector<float> values(length);
    for (float& value : values) value = normal(random);
    quant::quantize(type, values, reinterpret_cast<std::byte*>(row.data()));
    return row;
  }
  for (char& byte : row) byte = static_cast<char>(random());
  // MXFP4's codes have a deviation of about 3.5 times half their scale.
  const auto exponent = static_cast<char>(128 + std::lround(std::log2(deviation / 4.7f)));
  for (size_t at = 0; at < row.size(); at += quant::format(type).blockBytes) row[at] = exponent;
  return row;
}

uint64_t padded(uint64_t bytes) { return (bytes + Alignment - 1) / Alignment * Alignment; }

} // namespace

uint64_t RandomModel::Tensor::rows() const {
  uint64_t rows = 1;
  for (size_t i = 1; i < dims.size(); ++i) rows *= dims[i];
  return rows;
}

uint64_t RandomModel::Tensor::bytes() const { return rows() * quant::rowBytes(quant::format(type), dims[0]); }

RandomModel::RandomModel(std::string architecture) : architecture_(std::move(architecture)) { keys_.text("general.architecture", architecture_); }

RandomModel& RandomModel::count(const std::string& key, uint32_t value) {
  keys_.u32(architecture_ + "." + key, value);
  return *this;
}
RandomModel& RandomModel::counts(const std::string& key, const std::vector<uint32_t>& values) {
  keys_.numbers(architecture_ + "." + key, values);
  return *this;
}
RandomModel& RandomModel::flags(const std::string& key, const std::vector<bool>& values) {
  constexpr uint32_t Bool = 7;
  std::string bytes = test::GgufWriter::arrayHead(Bool, values.size());
  for (const bool value : values) bytes += value ? '\1' : '\0';
  keys_.raw(architecture_ + "." + key, 9, bytes);
  return *this;
}
RandomModel& RandomModel::flag(const std::string& key, bool value) {
  keys_.flag(architecture_ + "." + key, value);
  return *this;
}
RandomModel& RandomModel::number(const std::string& key, float value) {
  keys_.f32(architecture_ + "." + key, value);
  return *this;
}
RandomModel& RandomModel::text(const std::string& key, const std::string& value) {
  keys_.text(architecture_ + "." + key, value);
  return *this;
}

RandomModel& RandomModel::vocabulary(std::vector<std::string> texts, std::vector<int32_t> types) {
  tokens_ = std::move(texts);
  tokenTypes_ = std::move(types);
  return *this;
}

void RandomModel::tensor(const std::string& name, const std::vector<uint64_t>& dims, quant::Type type, float mean, float deviation) {
  tensors_.push_back({name, dims, type, mean, deviation > 0 ? deviation : 1 / std::sqrt(static_cast<float>(dims[0]))});
}

bool RandomModel::write(const std::string& path) const {
  test::GgufWriter writer = keys_;
  const uint64_t tokens = std::find_if(tensors_.begin(), tensors_.end(), [](const Tensor& t) { return t.name == "token_embd.weight"; })->dims[1];
  std::vector<std::string> texts = tokens_;
  for (uint64_t i = texts.size(); i < tokens; ++i) texts.push_back("t" + std::to_string(i));
  writer.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2").texts("tokenizer.ggml.tokens", texts).texts("tokenizer.ggml.merges", {});
  if (!tokenTypes_.empty()) writer.numbers("tokenizer.ggml.token_type", tokenTypes_);
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    writer.tensorAt(tensor.name, tensor.dims, static_cast<uint32_t>(tensor.type), offset);
    offset += padded(tensor.bytes());
  }
  std::ofstream out(path, std::ios::binary);
  out << writer.bytes();
  std::mt19937 random(1);
  for (const Tensor& tensor : tensors_) {
    const uint64_t rows = tensor.rows();
    std::vector<std::string> different;
    // Routers are small, and equal rows would make experts equal.
    const uint64_t count = tensor.type == quant::Type::F32 ? rows : std::min(rows, DifferentRows);
    for (uint64_t i = 0; i < count; ++i) different.push_back(randomRow(tensor.type, tensor.dims[0], tensor.mean, tensor.deviation, random));
    for (uint64_t row = 0; row < rows; ++row) out << different[row % count];
    out << std::string(padded(tensor.bytes()) - tensor.bytes(), '\0');
  }
  return static_cast<bool>(out.flush());
}

} // namespace mashbox::bench
