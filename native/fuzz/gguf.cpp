#include "gguf.hpp"

#include "base/text.hpp"
#include "gguf/file.hpp"
#include "gguf/vocabulary.hpp"
#include "model/config.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace mashbox::fuzz {
namespace {

std::string outcome;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void note(const char* stage, const Error& error) {
  require(std::all_of(error.message.begin(), error.message.end(), [](char c) { return c >= 0x20 && c < 0x7f; }), "a message is one line of ASCII");
  require(!error.message.empty() && error.message.size() < 1000, "a message is short");
  outcome = stage;
  outcome += errorCode(error.kind);
  const size_t name = error.subject.empty() ? std::string::npos : error.message.find(error.subject);
  bool quoted = false;
  for (size_t i = 0; i < error.message.size(); ++i) {
    if (i == name) {
      i += error.subject.size() - 1;
      continue;
    }
    const char c = error.message[i];
    quoted ^= c == '"';
    if (!quoted && (c < '0' || c > '9')) outcome += c;
  }
}

void readTensors(const gguf::File& file, std::span<const std::byte> bytes) {
  std::vector<float> row;
  for (const gguf::Tensor& tensor : file.tensors()) {
    require(tensor.data >= bytes.data() && tensor.bytes <= size_t(bytes.data() + bytes.size() - tensor.data), "tensor data lie in the file");
    require(tensor.rows() * tensor.rowBytes() == tensor.bytes, "rows fill a tensor");
    require(file.tensor(tensor.name) == &tensor, "a tensor is found by its name");
    if (!tensor.format->decodable) continue;
    row.resize(tensor.dims[0]);
    for (uint64_t r : {uint64_t(0), tensor.rows() - 1}) quant::dequantize(tensor.format->type, tensor.data + r * tensor.rowBytes(), row);
  }
}

void run(std::span<const std::byte> bytes) {
  const auto file = gguf::File::parse(bytes);
  if (!file) return note("file ", file.error());
  for (const gguf::Entry& entry : file->entries()) require(file->find(entry.key) == &entry.value, "a value is found by its key");
  readTensors(*file, bytes);
  if (auto vocabulary = gguf::checkVocabulary(*file); !vocabulary) note("vocabulary ", vocabulary.error());
  const auto config = model::readConfig(*file);
  if (!config) return note("config ", config.error());
  outcome = "accepted";
}

} // namespace

const std::string& lastOutcome() { return outcome; }

} // namespace mashbox::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mashbox::fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}
