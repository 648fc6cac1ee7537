#pragma once

#include "gguf_writer.hpp"

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace mashbox::test {

/// A one-layer model of width 32 with 2 heads on 1 kv head of 16 and F32 weights, as GGUF bytes. Its weights mean nothing.
struct TinyModel {
  std::string architecture = "llama";
  uint32_t rows = 40, tokens = 40; ///< of token_embd, of the token list
  uint32_t context = 4096;
  std::set<std::string> without;   ///< keys and tensors to leave out
  std::string halved;              ///< the tensor whose values are halved
  std::function<void(GgufWriter&)> more;

  std::string bytes() const {
    GgufWriter writer;
    const auto name = [&](const char* key) { return architecture + "." + key; };
    const auto number = [&](const char* key, uint32_t value) {
      if (!without.contains(key)) writer.u32(name(key), value);
    };
    writer.text("general.architecture", architecture);
    number("block_count", 1);
    number("context_length", context);
    number("embedding_length", Width);
    number("feed_forward_length", FeedForward);
    number("attention.head_count", 2);
    number("attention.head_count_kv", 1);
    if (!without.contains("attention.layer_norm_rms_epsilon")) writer.f32(name("attention.layer_norm_rms_epsilon"), 1e-5f);
    writer.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
    std::vector<std::string> texts;
    for (uint32_t i = 0; i < tokens; ++i) texts.push_back("t" + std::to_string(i));
    writer.texts("tokenizer.ggml.tokens", texts).texts("tokenizer.ggml.merges", {});
    matrix(writer, "token_embd.weight", {Width, rows});
    matrix(writer, "output_norm.weight", {Width});
    matrix(writer, "blk.0.attn_norm.weight", {Width});
    matrix(writer, "blk.0.attn_q.weight", {Width, Width});
    matrix(writer, "blk.0.attn_k.weight", {Width, 16});
    matrix(writer, "blk.0.attn_v.weight", {Width, 16});
    matrix(writer, "blk.0.attn_output.weight", {Width, Width});
    matrix(writer, "blk.0.ffn_norm.weight", {Width});
    matrix(writer, "blk.0.ffn_gate.weight", {Width, FeedForward});
    matrix(writer, "blk.0.ffn_up.weight", {Width, FeedForward});
    matrix(writer, "blk.0.ffn_down.weight", {FeedForward, Width});
    if (more) more(writer);
    return writer.bytes();
  }

  /// Values of a fixed sequence between −0.5 and 0.5.
  static std::string values(size_t count, float factor = 1) {
    std::string out;
    for (size_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(std::fmod(static_cast<double>(i) * 0.61803398875 + static_cast<double>(count) * 0.137, 1.0) - 0.5) * factor;
      out.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return out;
  }

  static constexpr uint32_t Width = 32, FeedForward = 48;

private:
  void matrix(GgufWriter& writer, const std::string& name, const std::vector<uint64_t>& dims) const {
    if (without.contains(name)) return;
    size_t count = 1;
    for (const uint64_t dim : dims) count *= dim;
    writer.tensor(name, dims, 0, values(count, name == halved ? 0.5f : 1));
  }
};

} // namespace mashbox::test
