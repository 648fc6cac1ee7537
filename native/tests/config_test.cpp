#include "model/config.hpp"
#include "gguf/file.hpp"
#include "model/rope.hpp"
#include "test.hpp"
#include "tiny_model.hpp"

#include <cmath>
#include <numbers>

namespace mashbox {
namespace {

using model::Config;
using test::check;
using test::Test;
using test::TinyModel;

Result<Config> read(const TinyModel& tiny) {
  const std::string bytes = tiny.bytes();
  const auto file = gguf::File::parse(test::asBytes(bytes));
  if (!file) return file.error();
  return model::readConfig(*file);
}

void refused(const TinyModel& tiny, ErrorKind kind, const std::string& subject) {
  const auto config = read(tiny);
  check(!config, subject + " should be refused");
  const Error& error = config.error();
  check(error.kind == kind && error.subject == subject && error.message.find(subject) != std::string::npos,
        subject + " gave " + errorCode(error.kind) + ": " + error.message);
}

TinyModel with(std::function<void(test::GgufWriter&)> more) {
  TinyModel tiny;
  tiny.more = std::move(more);
  return tiny;
}

const Test defaults{"config: sizes, and the defaults of absent keys", [] {
  const auto config = read({});
  check(static_cast<bool>(config), config ? "" : config.error().message);
  check(config->layers.size() == 1 && config->width == 32 && config->epsilon == 1e-5f && config->layers[0].feedForward == 48);
  const model::Attention attention = *config->layers[0].attention;
  check(attention.heads == 2 && attention.kvHeads == 1 && attention.keyLength == 16 && attention.valueLength == 16 && attention.scale == 0.25f);
  check(attention.window == 0 && !attention.qkNorm && !attention.qkvBias && attention.gate == model::OutputGate::None && attention.rope == 0);
  check(config->ropes.size() == 1 && config->ropes[0].dims == 16 && config->ropes[0].base == 10000 && config->ropes[0].scaling == model::RopeScaling::None);
  check(config->tied && config->vocabulary == 40 && config->tokens == 40);
}};

const Test flags{"config: families differ in their flags", [] {
  check(read({})->ropes[0].pairing == model::RopePairing::Adjacent);
  TinyModel qwen;
  qwen.architecture = "qwen2";
  refused(qwen, ErrorKind::Inconsistent, "blk.0.attn_q.bias");
  qwen.architecture = "qwen3";
  refused(qwen, ErrorKind::Inconsistent, "blk.0.attn_q_norm.weight");
  qwen.more = [](test::GgufWriter& w) {
    w.tensor("blk.0.attn_q_norm.weight", {16}, 0, TinyModel::values(16)).tensor("blk.0.attn_k_norm.weight", {16}, 0, TinyModel::values(16));
  };
  const auto config = read(qwen);
  check(config && config->layers[0].attention->qkNorm && config->ropes[0].pairing == model::RopePairing::Halves);
}};

const Test missing{"config: what is missing is named", [] {
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    TinyModel tiny;
    tiny.without = {key};
    refused(tiny, ErrorKind::Inconsistent, std::string("llama.") + key);
  }
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_output.weight", "blk.0.ffn_down.weight"}) {
    TinyModel tiny;
    tiny.without = {name};
    refused(tiny, ErrorKind::Inconsistent, name);
  }
}};

const Test unsupported{"config: what this engine cannot run is unsupported, and named", [] {
  TinyModel dense = with([](auto& w) { w.u32("qwen2.expert_count", 8); });
  dense.architecture = "qwen2";
  refused(dense, ErrorKind::Unsupported, "qwen2.expert_count");
  refused(with([](auto& w) { w.u32("llama.attention.sliding_window", 512); }), ErrorKind::Unsupported, "llama.attention.sliding_window");
  refused(with([](auto& w) { w.f32("llama.logit_scale", 0.5f); }), ErrorKind::Unsupported, "llama.logit_scale");
  refused(with([](auto& w) { w.text("llama.rope.scaling.type", "longrope").f32("llama.rope.scaling.factor", 4); }), ErrorKind::Unsupported,
          "llama.rope.scaling.type");
  check(static_cast<bool>(read(with([](auto& w) { w.u32("llama.expert_count", 0); }))), "no experts at all are fine");
  TinyModel unknown;
  unknown.architecture = "mamba";
  refused(unknown, ErrorKind::Unsupported, "general.architecture");
}};

const Test impossible{"config: impossible values are refused by name", [] {
  refused(with([](auto& w) { w.f32("llama.rope.scaling.factor", 0); }), ErrorKind::Invalid, "llama.rope.scaling.factor");
  refused(with([](auto& w) { w.u32("llama.attention.key_length", 1u << 31); }), ErrorKind::Invalid, "llama.attention.key_length");
  refused(with([](auto& w) { w.f32("llama.attention.scale", -1); }), ErrorKind::Invalid, "llama.attention.scale");
  refused(with([](auto& w) { w.tensor("rope_freqs.weight", {8}, 0, std::string(32, '\0')); }), ErrorKind::Invalid, "rope_freqs.weight");
  refused(with([](auto& w) { w.tensor("rope_freqs.weight", {4}, 0, TinyModel::values(4)); }), ErrorKind::Inconsistent, "rope_freqs.weight");
  refused(with([](auto& w) { w.tensor("blk.0.attn_q.bias", {31}, 0, TinyModel::values(31)); }), ErrorKind::Inconsistent, "blk.0.attn_q.bias");
  TinyModel padded;
  padded.tokens = 41;
  refused(padded, ErrorKind::Inconsistent, "token_embd.weight");
}};

/// The keys of a qwen35 of four layers whose delta net has 2 value heads on 1 key head; `change` comes first, its keys are left out.
TinyModel hybrid(const std::set<std::string>& without = {}, std::function<void(test::GgufWriter&)> change = {}) {
  TinyModel tiny;
  tiny.architecture = "qwen35";
  tiny.without = {"block_count"};
  tiny.more = [without, change](test::GgufWriter& w) {
    const std::pair<const char*, uint32_t> keys[] = {{"block_count", 4},      {"ssm.group_count", 1},  {"ssm.time_step_rank", 2},
                                                     {"ssm.state_size", 16}, {"ssm.inner_size", 32}, {"ssm.conv_kernel", 4}};
    for (const auto& [key, value] : keys)
      if (!without.contains(key)) w.u32(std::string("qwen35.") + key, value);
    if (change) change(w);
  };
  return tiny;
}

const Test hybridKeys{"config: keys of hybrid models that cannot be are refused by name", [] {
  const auto given = [](const std::string& key, uint32_t value, ErrorKind kind, const std::string& subject = "") {
    refused(hybrid({key}, [&](auto& w) { w.u32("qwen35." + key, value); }), kind, "qwen35." + (subject.empty() ? key : subject));
  };
  for (const char* key : {"ssm.group_count", "ssm.time_step_rank", "ssm.state_size", "ssm.inner_size", "ssm.conv_kernel"}) {
    refused(hybrid({key}), ErrorKind::Inconsistent, std::string("qwen35.") + key);
    given(key, 0, ErrorKind::Invalid);
    given(key, 0xffffffff, ErrorKind::Invalid);
  }
  given("ssm.group_count", 3, ErrorKind::Inconsistent);
  given("ssm.time_step_rank", 3, ErrorKind::Inconsistent, "ssm.inner_size");
  given("ssm.state_size", 24, ErrorKind::Unsupported);
  given("ssm.inner_size", 33, ErrorKind::Inconsistent);
  given("ssm.inner_size", 48, ErrorKind::Unsupported);
  given("ssm.inner_size", 1, ErrorKind::Inconsistent);
  given("ssm.conv_kernel", 17, ErrorKind::Invalid);
  given("full_attention_interval", 0, ErrorKind::Invalid);
  given("full_attention_interval", 5, ErrorKind::Unsupported);
  given("nextn_predict_layers", 4, ErrorKind::Unsupported);
  const auto listed = [](const std::string& key, std::vector<uint32_t> values, ErrorKind kind) {
    refused(hybrid({}, [&](auto& w) { w.numbers("qwen35." + key, values); }), kind, "qwen35." + key);
  };
  listed("attention.recurrent_layers", {1, 1, 0}, ErrorKind::Inconsistent);
  listed("attention.recurrent_layers", {1, 1, 2, 0}, ErrorKind::Invalid);
  listed("rope.dimension_sections", {3, 3, 2}, ErrorKind::Inconsistent);
  listed("rope.dimension_sections", {0, 0, 0, 0}, ErrorKind::Unsupported);
  listed("rope.dimension_sections", {2, 2, 2, 2}, ErrorKind::Unsupported);
  refused(hybrid({}, [](auto& w) { w.numbers("qwen35.attention.recurrent_layers", std::vector<uint32_t>{1, 1, 1, 1}); }), ErrorKind::Unsupported,
          "qwen35.full_attention_interval");
  refused(hybrid(), ErrorKind::Inconsistent, "blk.0.attn_qkv.weight");
}};

const Test linear{"rope: linear scaling and factors divide the frequencies", [] {
  model::Rope rope;
  rope.dims = 8;
  const auto plain = model::rotationOf(rope, {});
  rope.scaling = model::RopeScaling::Linear;
  rope.factor = 4;
  const float factors[] = {1, 2, 4, 8};
  const auto scaled = model::rotationOf(rope, factors);
  check(plain.frequencies.size() == 4 && plain.magnitude == 1 && scaled.magnitude == 1);
  for (size_t i = 0; i < 4; ++i) {
    check(std::abs(plain.frequencies[i] - std::pow(10000, -2.0 * static_cast<double>(i) / 8)) < 1e-12);
    check(std::abs(scaled.frequencies[i] - plain.frequencies[i] / factors[i] / 4) < 1e-12);
  }
}};

const Test yarn{"rope: YaRN keeps fast pairs, stretches slow ones and ramps between", [] {
  const auto config = read(with([](auto& w) {
    w.text("llama.rope.scaling.type", "yarn").f32("llama.rope.scaling.factor", 32).u32("llama.rope.scaling.original_context_length", 4096);
    w.u32("llama.attention.key_length", 16);
  }));
  check(config && config->ropes[0].scaling == model::RopeScaling::Yarn, config ? "" : config.error().message);
  model::Rope rope = config->ropes[0];
  rope.dims = 64;
  rope.base = 150000;
  const auto rotation = model::rotationOf(rope, {});
  check(std::abs(rotation.magnitude - (0.1 * std::log(32.0) + 1)) < 1e-12);
  // The bounds by the formula: 64 ln(4096 / (β 2π)) / (2 ln 150000) for β = 32 and 1.
  const double low = std::floor(64 * std::log(4096 / (32 * 2 * std::numbers::pi)) / (2 * std::log(150000.0)));
  const double high = std::ceil(64 * std::log(4096 / (2 * std::numbers::pi)) / (2 * std::log(150000.0)));
  check(low == 8 && high == 18);
  for (size_t i = 0; i < 32; ++i) {
    const double plain = std::pow(150000, -2.0 * static_cast<double>(i) / 64);
    const double keep = i <= 8 ? 1 : i >= 18 ? 0 : 1 - (static_cast<double>(i) - 8) / 10;
    check(std::abs(rotation.frequencies[i] / (plain * keep + plain / 32 * (1 - keep)) - 1) < 1e-12, "pair " + std::to_string(i));
  }
}};

} // namespace
} // namespace mashbox
