#include "dequantized_model.hpp"
#include "model/experts_paths.hpp"
#include "model/tensors.hpp"

#include <functional>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using test::check;
using test::GgufWriter;
using test::Test;

std::string bytesOf(const gguf::Tensor& tensor) { return {reinterpret_cast<const char*>(tensor.data), tensor.bytes}; }

std::vector<uint64_t> dimsOf(const gguf::Tensor& tensor) { return {tensor.dims.begin(), tensor.dims.begin() + tensor.rank}; }

/// Writes what stands in a tensor's place; false leaves it as it is.
using Replace = std::function<bool(GgufWriter& writer, const gguf::File& file, const gguf::Tensor& tensor)>;

/// The same model with other tensors.
test::TemporaryFile rewritten(const std::filesystem::path& path, const Replace& replace) {
  const auto file = test::expect(gguf::File::open(path.string()));
  GgufWriter writer;
  test::copyKeys(writer, file);
  for (const gguf::Tensor& tensor : file.tensors())
    if (!replace(writer, file, tensor)) writer.tensor(tensor.name, dimsOf(tensor), static_cast<uint32_t>(tensor.format->type), bytesOf(tensor));
  return test::TemporaryFile(writer.bytes());
}

/// Puts `attn_qkv` in the place of three tensors where all of them are there and have one type.
bool fuseProjections(GgufWriter& writer, const gguf::File& file, const gguf::Tensor& tensor) {
  std::string name(tensor.name);
  const size_t at = name.find("attn_");
  if (at == std::string::npos) return false;
  const std::string block = name.substr(0, at), rest = name.substr(at + 6);
  if (rest != ".weight" && rest != ".bias") return false;
  const auto *query = file.tensor(block + "attn_q" + rest), *key = file.tensor(block + "attn_k" + rest), *value = file.tensor(block + "attn_v" + rest);
  if (!query || !key || !value || query->format != key->format || key->format != value->format) return false;
  if (&tensor != query) return &tensor == key || &tensor == value;
  std::vector<uint64_t> dims = dimsOf(*query);
  dims.back() += key->dims[query->rank - 1] + value->dims[query->rank - 1];
  writer.tensor(block + "attn_qkv" + rest, dims, static_cast<uint32_t>(query->format->type), bytesOf(*query) + bytesOf(*key) + bytesOf(*value));
  return true;
}

/// Puts a tensor per expert in the place of a stack.
bool unstackExperts(GgufWriter& writer, const gguf::File&, const gguf::Tensor& tensor) {
  const std::string name(tensor.name), stack = "_exps.weight";
  if (!name.ends_with(stack)) return false;
  for (uint64_t expert = 0; expert < tensor.dims[2]; ++expert)
    writer.tensor(name.substr(0, name.size() - stack.size()) + "." + std::to_string(expert) + ".weight", {tensor.dims[0], tensor.dims[1]},
                  static_cast<uint32_t>(tensor.format->type), bytesOf(tensor.part(expert, 1)));
  return true;
}

size_t tensorCount(const std::filesystem::path& path) { return test::expect(gguf::File::open(path.string())).tensors().size(); }

/// Logits of some tokens in one batch and one by one, which are the same.
std::vector<float> logitsOf(const std::filesystem::path& path, cpu::Isa isa) {
  const std::vector<int32_t> tokens = {5, 6, 7, 300, 12, 9, 44, 2, 81, 5, 17};
  const auto context = test::createContext(test::loadModel(path, isa), model::KvType::F16);
  const auto all = test::allLogits(*context, tokens, 256);
  check(test::sameBits(test::allLogits(*context, tokens, 1), all), "chunks change nothing");
  return all;
}

void sameLogits(const std::string& name, const Replace& replace) {
  const auto path = test::golden(name);
  const auto changed = rewritten(path, replace);
  check(tensorCount(changed.path()) != tensorCount(path), name + " is laid out otherwise");
  for (const cpu::Isa isa : test::availableTiers()) check(test::sameBits(logitsOf(changed.path(), isa), logitsOf(path, isa)), name + " under " + cpu::isaName(isa));
}

const std::vector<Test> fused = [] {
  std::vector<Test> tests;
  for (const std::string name : {"llama/model-q8_0.gguf", "qwen2/model-f32.gguf", "qwen3/model-q4_0.gguf", "gemma4-e/model-f32.gguf", "gemma4-31b/model-q8_0.gguf",
                                 "gpt-oss/model-f32.gguf", "laguna/model-q4_0.gguf", "qwen35/model-f32.gguf"})
    tests.emplace_back("layouts: attn_qkv equals attn_q, attn_k and attn_v: " + name, [name] { sameLogits(name, fuseProjections); });
  return tests;
}();

const std::vector<Test> apart = [] {
  std::vector<Test> tests;
  for (const std::string name : {"qwen2moe/model-q8_0.gguf", "laguna/model-f32.gguf"})
    tests.emplace_back("layouts: a tensor per expert equals a stack: " + name, [name] { sameLogits(name, unstackExperts); });
  return tests;
}();

const Test trailing{"layouts: attn_qkv may have a third dimension of 1", [] {
  sameLogits("llama/model-q8_0.gguf", [](GgufWriter& writer, const gguf::File& file, const gguf::Tensor& tensor) {
    GgufWriter discarded;
    if (!fuseProjections(discarded, file, tensor)) return false;
    if (tensor.name.find("attn_q.") == std::string_view::npos) return true;
    const std::string block(tensor.name.substr(0, tensor.name.find("attn_q.")));
    const auto &key = *file.tensor(block + "attn_k.weight"), &value = *file.tensor(block + "attn_v.weight");
    writer.tensor(block + "attn_qkv.weight", {tensor.dims[0], tensor.dims[1] + key.dims[1] + value.dims[1], 1}, static_cast<uint32_t>(tensor.format->type),
                  bytesOf(tensor) + bytesOf(key) + bytesOf(value));
    return true;
  });
}};

const Test mistakes{"layouts: attn_qkv of another shape, or without its bias, is refused by name", [] {
  const auto refused = [](const std::string& file, const std::string& subject, const Replace& replace) {
    const auto read = model::Model::inspect(rewritten(test::golden(file), replace).path().string(), {});
    check(!read && read.error().kind == ErrorKind::Inconsistent && read.error().subject == subject, subject + (read ? "" : ": " + read.error().message));
  };
  refused("llama/model-q8_0.gguf", "blk.0.attn_qkv.weight", [](GgufWriter& writer, const gguf::File&, const gguf::Tensor& tensor) {
    if (tensor.name != "blk.0.attn_q.weight") return false;
    writer.tensor("blk.0.attn_qkv.weight", dimsOf(tensor), static_cast<uint32_t>(tensor.format->type), bytesOf(tensor));
    return true;
  });
  refused("gpt-oss/model-q8_0.gguf", "blk.0.attn_qkv.bias", [](GgufWriter& writer, const gguf::File& file, const gguf::Tensor& tensor) {
    return tensor.name.find(".bias") == std::string_view::npos && fuseProjections(writer, file, tensor);
  });
}};

const Test aside{"layouts: tensors of multi-token prediction are neither read nor counted", [] {
  const auto file = test::expect(gguf::File::open(test::golden("qwen35-mtp/model-q8_0.gguf").string()));
  const auto config = test::expect(model::readConfig(file));
  const auto tensors = test::expect(model::bindTensors(file, config));
  check(config.predictionBlocks == 1);
  const std::string block = "blk." + std::to_string(config.layers.size()) + ".";
  uint64_t unused = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const bool used = std::find(tensors.used.begin(), tensors.used.end(), &tensor) != tensors.used.end();
    check(used != tensor.name.starts_with(block), std::string(tensor.name));
    if (!used) unused += tensor.bytes;
  }
  check(unused > 0 && tensors.bytes() + unused == file.tensorBytes());
  const auto inspected = test::expect(model::Model::inspect(test::golden("qwen35-mtp/model-q8_0.gguf").string(), {}));
  check(inspected.plan.weights == tensors.bytes() && inspected.predictionBlocks == 1);
}};

} // namespace
} // namespace mashbox
