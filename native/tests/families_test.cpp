#include "gguf/file.hpp"
#include "gguf_writer.hpp"
#include "model/config.hpp"
#include "model/family.hpp"
#include "model_session.hpp"
#include "test.hpp"

#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace mashbox {
namespace {

using model::Attention;
using model::Config;
using test::check;
using test::GgufWriter;
using test::Test;

std::filesystem::path seed(const std::string& name) { return test::projectRoot() / "native/fuzz/corpus" / ("tiny-" + name + ".gguf"); }

Result<Config> configOf(const std::string& bytes) {
  const auto file = gguf::File::parse(test::asBytes(bytes));
  if (!file) return file.error();
  return model::readConfig(*file);
}

Config config(const std::string& name) { return test::expect(configOf(test::readFile(seed(name)))); }

/// The seed without some keys and tensors, and with others.
std::string edited(const std::string& name, const std::set<std::string>& without, const std::function<void(GgufWriter&)>& more) {
  const std::string bytes = test::readFile(seed(name));
  const auto file = test::expect(gguf::File::parse(test::asBytes(bytes)));
  GgufWriter writer;
  for (const gguf::Entry& entry : file.entries()) {
    const std::string key(entry.key);
    if (without.contains(key)) continue;
    if (const auto* number = std::get_if<uint64_t>(&entry.value)) writer.number(key, *number);
    if (const auto* number = std::get_if<double>(&entry.value)) writer.number(key, *number);
    if (const auto* flag = std::get_if<bool>(&entry.value)) writer.flag(key, *flag);
    if (const auto* text = std::get_if<std::string_view>(&entry.value)) writer.text(key, *text);
    if (const auto* array = std::get_if<gguf::Array>(&entry.value)) {
      if (const auto* numbers = std::get_if<std::vector<uint64_t>>(&array->values)) writer.numbers(key, *numbers);
      if (const auto* numbers = std::get_if<std::vector<int64_t>>(&array->values)) writer.numbers(key, *numbers);
      if (const auto* flags = std::get_if<std::vector<bool>>(&array->values)) writer.numbers(key, std::vector<uint8_t>(flags->begin(), flags->end()));
      if (const auto* texts = std::get_if<std::vector<std::string_view>>(&array->values)) writer.texts(key, {texts->begin(), texts->end()});
    }
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (without.contains(std::string(tensor.name))) continue;
    writer.tensor(tensor.name, {tensor.dims.begin(), tensor.dims.begin() + tensor.rank}, static_cast<uint32_t>(tensor.format->type),
                  {reinterpret_cast<const char*>(tensor.data), tensor.bytes});
  }
  more(writer);
  return writer.bytes();
}

void refused(const std::string& bytes, ErrorKind kind, const std::string& subject) {
  const auto read = configOf(bytes);
  check(!read, subject + " should be refused");
  check(read.error().kind == kind && read.error().subject == subject, subject + " gave " + errorCode(read.error().kind) + ": " + read.error().message);
}

const Test seeds{"families: every one has a seed of the fuzz target that its mapping accepts", [] {
  std::set<std::string> reached;
  for (const auto& entry : std::filesystem::directory_iterator(seed("").parent_path())) {
    const auto read = configOf(test::readFile(entry.path()));
    if (read) reached.insert(read->architecture);
  }
  const std::string names = model::familyNames();
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find(", ", at), names.size());
    check(reached.contains(names.substr(at, end - at)), names.substr(at, end - at) + " has a seed");
    at = end + 2;
  }
}};

const Test gemma2{"families: gemma2 has caps and a window without their keys, and the 27B model's scale by its 46 layers", [] {
  const Config keyed = config("gemma2");
  check(keyed.sandwichNorms && keyed.logitSoftcap == 10 && keyed.embeddingScale == 4 && keyed.layers[0].activation == model::Activation::Gelu);
  check(keyed.layers[0].attention->window == 32 && keyed.layers[1].attention->window == 0 && keyed.layers[1].attention->scoreSoftcap == 3);
  const auto old = configOf(edited("gemma2", {"gemma2.attn_logit_softcapping", "gemma2.final_logit_softcapping", "gemma2.attention.sliding_window", "gemma2.context_length"},
                                   [](GgufWriter& w) { w.u32("gemma2.context_length", 8192); }));
  check(old && old->logitSoftcap == 30 && old->layers[0].attention->scoreSoftcap == 50 && old->layers[0].attention->window == 4096);
}};

const Test gemma3{"families: gemma3's sliding layers have a rope of their own; a pattern key wins", [] {
  const auto patterned = configOf(edited("gemma3", {}, [](GgufWriter& w) { w.u32("gemma3.attention.sliding_window_pattern", 2); }));
  check(static_cast<bool>(patterned), patterned ? "" : patterned.error().message);
  check(patterned->layers[0].attention->window == 32 && patterned->layers[1].attention->window == 0);
  check(patterned->ropes.size() == 2 && patterned->layers[0].attention->rope == 1 && patterned->layers[1].attention->rope == 0);
  check(patterned->ropes[0].factor == 8 && patterned->ropes[1].scaling == model::RopeScaling::None && patterned->ropes[1].base == 10000);
  const auto full = configOf(edited("gemma3", {"gemma3.attention.sliding_window"}, [](GgufWriter&) {}));
  check(full && full->window() == 0 && full->ropes.size() == 1);
}};

const Test gemma4{"families: gemma4's last layers read the cache of the last layer of their kind; V may be K", [] {
  const Config e = config("gemma4-e");
  check(e.layers.size() == 4 && e.perLayerWidth == 8 && !e.layers[1].attention->cacheOf && e.layers[2].attention->cacheOf == 0 && e.layers[3].attention->cacheOf == 1);
  check(e.layers[0].attention->keyLength == 4 && e.layers[1].attention->keyLength == 8 && e.layers[0].attention->scale == 1 && e.layers[0].attention->valueNorm);
  const Config dense = config("gemma4-31b");
  check(!dense.layers[0].attention->valueIsKey && dense.layers[1].attention->valueIsKey && dense.layers[0].attention->kvHeads == 2 && dense.layers[1].attention->kvHeads == 1);
  const Config mixed = config("gemma4-a4b");
  check(mixed.layers[0].feedForward == 16 && mixed.layers[0].experts && mixed.layers[0].experts->count == 8);
  const std::string shared = "gemma4.attention.shared_kv_layers";
  refused(edited("gemma4-e", {shared}, [&](GgufWriter& w) { w.u32(shared, 4); }), ErrorKind::Inconsistent, shared);
  refused(edited("gemma4-31b", {"gemma4.attention.value_length"}, [](GgufWriter& w) { w.u32("gemma4.attention.value_length", 4); }), ErrorKind::Inconsistent,
          "gemma4.attention.value_length");
}};

const Test others{"families: smollm3, laguna and gpt-oss", [] {
  const auto fourLayers = config("smollm3");
  check(fourLayers.layers[0].attention->rope == 0 && fourLayers.ropes[0].pairing == model::RopePairing::Adjacent);
  const Config laguna = config("laguna"), m1 = config("laguna-m1"), oss = config("gpt-oss");
  check(laguna.layers[0].attention->gate == model::OutputGate::SoftplusPerHead && laguna.layers[0].attention->heads == 4 && laguna.layers[1].attention->heads == 6);
  check(laguna.layers[0].attention->window == 0 && laguna.layers[1].attention->window == 24 && laguna.ropes[0].scaling == model::RopeScaling::Yarn);
  check(laguna.layers[0].feedForward > 0 && !laguna.layers[0].experts && laguna.layers[1].experts->selectionBias && laguna.ropes[0].attentionFactor == 1);
  check(m1.layers[0].attention->gate == model::OutputGate::SoftplusPerElement && m1.window() == 0);
  check(oss.layers[0].attention->sinks && oss.layers[0].attention->window == 32 && oss.layers[1].attention->window == 0 && !oss.ropes[0].wholePairs);
}};

const Test layersByHead{"families: heads may differ by layer; a rope longer than a head does not fit", [] {
  const auto perLayer = configOf(edited("laguna", {"laguna.attention.key_length", "laguna.attention.value_length"}, [](GgufWriter&) {}));
  check(!perLayer && perLayer.error().kind == ErrorKind::Inconsistent, "6 heads do not divide a width of 16");
  refused(edited("laguna", {"laguna.rope.dimension_count_swa"}, [](GgufWriter& w) { w.u32("laguna.rope.dimension_count_swa", 64); }), ErrorKind::Invalid,
          "laguna.rope.dimension_count_swa");
  refused(edited("gemma3", {"gemma3.attention.head_count"}, [](GgufWriter& w) { w.numbers("gemma3.attention.head_count", std::vector<uint32_t>{4, 4, 4}); }),
          ErrorKind::Inconsistent, "gemma3.attention.head_count");
}};

const Test silence{"families: a key that changes the arithmetic and that a family does not know is refused, not ignored", [] {
  struct Key {
    const char *family, *key;
  };
  for (const auto& [family, key] : std::vector<Key>{{"smollm3", "attention.sliding_window"}, {"gpt-oss", "attn_logit_softcapping"}, {"gemma2", "attention.shared_kv_layers"},
                                                    {"laguna", "final_logit_softcapping"}, {"gemma3", "embedding_length_per_layer_input"}, {"smollm3", "expert_count"},
                                                    {"gemma3", "residual_scale"}, {"laguna", "attention.clamp_kqv"}, {"gemma2", "rope.freq_base_swa"},
                                                    {"gpt-oss", "attention.key_length_swa"}, {"qwen2moe", "ssm.state_size"}, {"gemma4-e", "attention.kv_lora_rank"}}) {
    const std::string name = config(family).architecture + "." + key;
    refused(edited(family, {}, [&](GgufWriter& w) { w.f32(name, 2); }), ErrorKind::Unsupported, name);
    check(static_cast<bool>(configOf(edited(family, {}, [&](GgufWriter& w) { w.f32(name, 0); }))), name + " of 0 is off");
  }
  refused(edited("smollm3", {}, [](GgufWriter& w) { w.flag("smollm3.attention.causal", false); }), ErrorKind::Unsupported, "smollm3.attention.causal");
}};

} // namespace
} // namespace mashbox
