#pragma once

#include "gguf/file.hpp"
#include "gguf_writer.hpp"
#include "model_session.hpp"
#include "temporary_file.hpp"

#include <string>
#include <variant>
#include <vector>

namespace mashbox::test {

inline void copyEntry(GgufWriter& writer, const std::string& key, const gguf::Array& array) {
  if (const auto* signedOnes = std::get_if<std::vector<int64_t>>(&array.values)) writer.numbers(key, *signedOnes);
  if (const auto* unsignedOnes = std::get_if<std::vector<uint64_t>>(&array.values)) writer.numbers(key, *unsignedOnes);
  if (const auto* doubles = std::get_if<std::vector<double>>(&array.values)) writer.numbers(key, *doubles);
  if (const auto* flags = std::get_if<std::vector<bool>>(&array.values)) writer.numbers(key, std::vector<uint8_t>(flags->begin(), flags->end()));
  if (const auto* texts = std::get_if<std::vector<std::string_view>>(&array.values))
    writer.texts(key, std::vector<std::string>(texts->begin(), texts->end()));
}

inline void copyKeys(GgufWriter& writer, const gguf::File& file) {
  for (const gguf::Entry& entry : file.entries()) {
    const std::string key(entry.key);
    if (key == "general.alignment") continue;
    if (const auto* number = std::get_if<int64_t>(&entry.value)) writer.number(key, *number);
    if (const auto* number = std::get_if<uint64_t>(&entry.value)) writer.number(key, *number);
    if (const auto* number = std::get_if<double>(&entry.value)) writer.number(key, *number);
    if (const auto* flag = std::get_if<bool>(&entry.value)) writer.flag(key, *flag);
    if (const auto* text = std::get_if<std::string_view>(&entry.value)) writer.text(key, *text);
    if (const auto* array = std::get_if<gguf::Array>(&entry.value)) copyEntry(writer, key, *array);
  }
}

/// All values of a tensor, row after row.
inline std::vector<float> floatsOf(const gguf::Tensor& tensor) {
  std::vector<float> values(tensor.rows() * tensor.dims[0]);
  for (uint64_t row = 0; row < tensor.rows(); ++row)
    quant::dequantize(tensor.format->type, tensor.data + row * tensor.rowBytes(), std::span(values).subspan(row * tensor.dims[0], tensor.dims[0]));
  return values;
}

inline void writeFloats(GgufWriter& writer, std::string_view name, const std::vector<uint64_t>& dims, const std::vector<float>& values) {
  writer.tensor(name, dims, 0, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
}

/// A model with the same keys whose every tensor holds the float32 values of the original's: what its quantized weights stand for.
inline TemporaryFile dequantized(const std::filesystem::path& path) {
  const auto file = expect(gguf::File::open(path.string()));
  GgufWriter writer;
  copyKeys(writer, file);
  for (const gguf::Tensor& tensor : file.tensors())
    writeFloats(writer, tensor.name, {tensor.dims.begin(), tensor.dims.begin() + tensor.rank}, floatsOf(tensor));
  return TemporaryFile(writer.bytes());
}

} // namespace mashbox::test
