#include "gguf/file.hpp"
#include "model/config.hpp"
#include "model/experts_paths.hpp"
#include "model_session.hpp"
#include "test.hpp"
#include "tiny_model.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>

namespace mashbox {
namespace {

using model::Gating;
using test::check;
using test::GgufWriter;
using test::Test;
using test::TinyModel;

constexpr uint32_t Width = TinyModel::Width, Inner = 16;

std::string values(const std::vector<uint64_t>& dims, float factor = 1) {
  size_t count = 1;
  for (const uint64_t dim : dims) count *= dim;
  return TinyModel::values(count, factor);
}

/// A tiny mixture of four experts, two of them used. `changed` replaces the dimensions of one tensor.
struct TinyExperts {
  std::string architecture = "llama";
  uint32_t count = 4, used = 2, inner = Inner;
  std::string changed;
  std::vector<uint64_t> dims;
  std::set<std::string> without;
  std::function<void(GgufWriter&)> more = [](GgufWriter&) {};
  std::string router; ///< bytes of the router's weights

  TinyModel model() const {
    TinyModel tiny;
    tiny.architecture = architecture;
    tiny.without = {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"};
    tiny.more = [this](GgufWriter& w) {
      w.u32(architecture + ".expert_count", count).u32(architecture + ".expert_used_count", used).u32(architecture + ".expert_feed_forward_length", inner);
      const auto tensor = [&](const std::string& name, std::vector<uint64_t> shape) {
        if (without.contains(name)) return;
        if (name == changed) shape = dims;
        w.tensor("blk.0." + name, shape, 0, name == "ffn_gate_inp.weight" && !router.empty() ? router : values(shape));
      };
      tensor("ffn_gate_inp.weight", {Width, 4});
      tensor("ffn_gate_exps.weight", {Width, inner, 4});
      tensor("ffn_up_exps.weight", {Width, inner, 4});
      tensor("ffn_down_exps.weight", {inner, Width, 4});
      more(w);
    };
    return tiny;
  }
};

Result<model::Config> read(const TinyExperts& tiny) {
  const std::string bytes = tiny.model().bytes();
  const auto file = gguf::File::parse(test::asBytes(bytes));
  if (!file) return file.error();
  return model::readConfig(*file);
}

model::Experts experts(const TinyExperts& tiny) { return *test::expect(read(tiny)).layers[0].experts; }

void refused(const TinyExperts& tiny, ErrorKind kind, const std::string& subject) {
  const auto config = read(tiny);
  check(!config, subject + " should be refused");
  const Error& error = config.error();
  check(error.kind == kind && error.subject == subject && error.message.find(subject) != std::string::npos,
        subject + " gave " + errorCode(error.kind) + ": " + error.message);
}

TinyExperts with(std::function<void(GgufWriter&)> more) {
  TinyExperts tiny;
  tiny.more = std::move(more);
  return tiny;
}

const Test keys{"experts: the keys of a mixture, and the defaults of absent ones", [] {
  const model::Experts plain = experts({});
  check(plain.count == 4 && plain.used == 2 && plain.width == Inner && plain.sharedWidth == 0);
  check(plain.gating == Gating::Softmax && plain.normalise && plain.scale == 1 && plain.groups == 1);
  const model::Experts all = experts(with([](auto& w) {
    w.u32("llama.expert_gating_func", 2).flag("llama.expert_weights_norm", false).f32("llama.expert_weights_scale", 2.5f);
    w.u32("llama.expert_group_count", 2).u32("llama.expert_group_used_count", 1);
    w.tensor("blk.0.ffn_gate_shexp.weight", {Width, 24}, 0, values({Width, 24})).tensor("blk.0.ffn_up_shexp.weight", {Width, 24}, 0, values({Width, 24}));
    w.tensor("blk.0.ffn_down_shexp.weight", {24, Width}, 0, values({24, Width}));
  }));
  check(all.gating == Gating::Sigmoid && !all.normalise && all.scale == 2.5f && all.groups == 2 && all.usedGroups == 1 && all.sharedWidth == 24);
  check(experts(with([](auto& w) { w.u32("llama.expert_gating_func", 3); })).gating == Gating::SoftmaxOfSelected);
  check(experts(with([](auto& w) { w.u32("llama.expert_gating_func", 4); })).gating == Gating::RootSoftplus);
  check(experts(with([](auto& w) { w.f32("llama.expert_weights_scale", 0); })).scale == 1, "0 means no scale");
  check(!test::expect(read(with([](auto& w) { w.u32("llama.leading_dense_block_count", 0); }))).layers[0].feedForward, "no dense feed-forward beside them");
}};

const Test dense{"experts: leading layers may be dense, and then need their tensors", [] {
  refused(with([](auto& w) { w.u32("llama.leading_dense_block_count", 1); }), ErrorKind::Inconsistent, "blk.0.ffn_gate.weight");
}};

const Test impossible{"experts: impossible counts are refused by name", [] {
  refused({.used = 5}, ErrorKind::Inconsistent, "llama.expert_used_count");
  refused({.used = 0}, ErrorKind::Invalid, "llama.expert_used_count");
  refused({.count = 1u << 31}, ErrorKind::Invalid, "llama.expert_count");
  refused({.count = 5}, ErrorKind::Inconsistent, "blk.0.ffn_gate_inp.weight");
  refused(with([](auto& w) { w.u32("llama.expert_gating_func", 9); }), ErrorKind::Unsupported, "llama.expert_gating_func");
  refused(with([](auto& w) { w.u32("llama.expert_group_count", 3); }), ErrorKind::Inconsistent, "llama.expert_group_count");
  refused(with([](auto& w) { w.u32("llama.expert_group_count", 2).u32("llama.expert_group_used_count", 3); }), ErrorKind::Inconsistent, "llama.expert_group_used_count");
  refused(with([](auto& w) { w.u32("llama.expert_group_count", 4).u32("llama.expert_group_used_count", 1); }), ErrorKind::Inconsistent, "llama.expert_used_count");
  refused(with([](auto& w) { w.f32("llama.expert_weights_scale", -1); }), ErrorKind::Invalid, "llama.expert_weights_scale");
  refused({.architecture = "qwen2"}, ErrorKind::Unsupported, "qwen2.expert_count");
}};

const Test tensors{"experts: missing, misshapen and mistyped tensors are refused by name", [] {
  for (const char* name : {"ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"}) {
    refused({.without = {name}}, ErrorKind::Inconsistent, std::string("blk.0.") + name);
    for (const std::vector<uint64_t>& dims : {std::vector<uint64_t>{Width, Inner, 3}, {Inner, Inner, 4}, {Width, 4, 2}, {Width}, {Width, Inner, 4, 2}})
      refused({.changed = name, .dims = dims}, ErrorKind::Inconsistent, std::string("blk.0.") + name);
  }
  const auto apart = [](uint64_t rows, uint32_t type) {
    TinyExperts tiny{.without = {"ffn_gate_exps.weight"}};
    tiny.more = [=](GgufWriter& w) {
      for (const char* name : {"blk.0.ffn_gate.0.weight", "blk.0.ffn_gate.1.weight"}) w.tensor(name, {Width, Inner}, 0, values({Width, Inner}));
      if (rows) w.tensor("blk.0.ffn_gate.2.weight", {Width, rows}, type, std::string(Width * rows * (type ? 2 : 4), '\0'));
    };
    return tiny;
  };
  refused(apart(0, 0), ErrorKind::Inconsistent, "blk.0.ffn_gate.2.weight");
  refused(apart(Inner + 1, 0), ErrorKind::Inconsistent, "blk.0.ffn_gate.2.weight");
  refused(apart(Inner, 1), ErrorKind::Unsupported, "blk.0.ffn_gate.2.weight");
  const auto tensor = [](const char* name, std::vector<uint64_t> dims, uint32_t type = 0) {
    return with([=](auto& w) { w.tensor(name, dims, type, type == 0 ? values(dims) : std::string(2 * values(dims).size() / 4, '\0')); });
  };
  refused(tensor("blk.0.ffn_gate_exps.bias", {Inner, 3}), ErrorKind::Inconsistent, "blk.0.ffn_gate_exps.bias");
  refused(tensor("blk.0.ffn_gate_exps.bias", {Inner, 4}, 1), ErrorKind::Unsupported, "blk.0.ffn_gate_exps.bias");
  refused(tensor("blk.0.ffn_down_exps.scale", {3}), ErrorKind::Inconsistent, "blk.0.ffn_down_exps.scale");
  refused(tensor("blk.0.exp_probs_b.bias", {5}), ErrorKind::Inconsistent, "blk.0.exp_probs_b.bias");
  refused(tensor("blk.0.ffn_gate_up_exps.weight", {Width, Inner, 4}), ErrorKind::Inconsistent, "blk.0.ffn_gate_up_exps.weight");
  refused(tensor("blk.0.ffn_gate_shexp.weight", {Width, 8}), ErrorKind::Inconsistent, "blk.0.ffn_up_shexp.weight");
  refused(with([](auto& w) {
            w.u32("llama.expert_shared_feed_forward_length", 12);
            w.tensor("blk.0.ffn_gate_shexp.weight", {Width, 8}, 0, values({Width, 8}));
          }),
          ErrorKind::Inconsistent, "blk.0.ffn_gate_shexp.weight");
}};

/// The model loaded from a file that is gone afterwards.
std::shared_ptr<const model::Model> loaded(const TinyModel& tiny, const std::string& name, cpu::Isa isa = cpu::detectIsa()) {
  const auto path = std::filesystem::temp_directory_path() / ("mashbox-" + name + "-" + std::to_string(std::random_device()()) + ".gguf");
  std::ofstream(path, std::ios::binary) << tiny.bytes();
  auto model = test::loadModel(path, isa);
  std::filesystem::remove(path);
  return model;
}

const Test paths{"experts: a model says on which path its experts run, and why not on vector kernels", [] {
  check(!loaded({}, "dense")->expertPaths().any(), "no experts");
  for (const cpu::Isa isa : test::availableTiers()) {
    const auto plain = loaded(TinyExperts().model(), "plain", isa)->expertPaths();
    const bool scalar = isa == cpu::Isa::Scalar;
    check(plain.kernelSites == (scalar ? 0 : 3) && plain.exactSites == (scalar ? 3 : 0));
    check(plain.exactReasons == (scalar ? std::vector<std::string>{"the scalar tier has no vector kernels"} : std::vector<std::string>{}));
  }
}};

/// Logits of a few tokens, in one batch and one by one.
std::vector<float> logits(const TinyExperts& tiny, const std::string& name) {
  const auto context = test::createContext(loaded(tiny.model(), name), model::KvType::F32);
  const std::vector<int32_t> tokens{1, 7, 3, 3, 30, 12, 5, 9, 2};
  const auto all = test::allLogits(*context, tokens, 16);
  const auto single = test::allLogits(*context, tokens, 1);
  check(std::memcmp(all.data(), single.data(), all.size() * sizeof(float)) == 0, "chunking changes nothing");
  return all;
}

const Test fused{"experts: a fused stack of gate and up equals two stacks", [] {
  std::string gate, up, both;
  for (int e = 0; e < 4; ++e) {
    const std::string g = TinyModel::values(Width * Inner, 1 + 0.1f * float(e)), u = TinyModel::values(Width * Inner, 0.5f + 0.1f * float(e));
    gate += g, up += u, both += g + u;
  }
  TinyExperts apart{.without = {"ffn_gate_exps.weight", "ffn_up_exps.weight"}}, together = apart;
  apart.more = [&](GgufWriter& w) {
    w.tensor("blk.0.ffn_gate_exps.weight", {Width, Inner, 4}, 0, gate).tensor("blk.0.ffn_up_exps.weight", {Width, Inner, 4}, 0, up);
  };
  together.more = [&](GgufWriter& w) { w.tensor("blk.0.ffn_gate_up_exps.weight", {Width, 2 * Inner, 4}, 0, both); };
  check(test::sameBits(logits(apart, "apart"), logits(together, "together")));
}};

const Test broken{"experts: router weights that are NaN or infinite neither crash nor depend on batching", [] {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    TinyExperts tiny;
    for (uint32_t i = 0; i < Width * 4; ++i) tiny.router.append(reinterpret_cast<const char*>(&value), sizeof value);
    const auto all = logits(tiny, "router");
    check(std::all_of(all.begin(), all.end(), [](float x) { return std::isfinite(x); }), "weights of 0 or 1, finite logits");
  }
}};

} // namespace
} // namespace mashbox
