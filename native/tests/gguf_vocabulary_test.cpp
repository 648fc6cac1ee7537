#include "gguf/vocabulary.hpp"
#include "gguf_writer.hpp"
#include "test.hpp"

#include <filesystem>
#include <functional>

using namespace mashbox;
using test::check;
using test::GgufWriter;
using test::Test;

namespace {

/// The pieces of a small vocabulary; a test changes what it is about.
struct Vocabulary {
  std::string model = "gpt2", pre = "qwen2";
  std::vector<std::string> tokens{"a", "b", "ab", "<|end|>"};
  std::vector<std::string> merges{"a b"};
  std::vector<int32_t> types{1, 1, 1, 3};
  std::vector<float> scores{0, -1, -2, 0};
  std::function<void(GgufWriter&)> more = [](GgufWriter&) {};

  std::string bytes() const {
    GgufWriter writer;
    writer.text("general.architecture", "qwen3").texts("tokenizer.ggml.tokens", tokens);
    if (!model.empty()) writer.text("tokenizer.ggml.model", model);
    if (!pre.empty()) writer.text("tokenizer.ggml.pre", pre);
    if (!merges.empty()) writer.texts("tokenizer.ggml.merges", merges);
    if (!types.empty()) writer.numbers("tokenizer.ggml.token_type", types);
    if (!scores.empty()) writer.numbers("tokenizer.ggml.scores", scores);
    more(writer);
    return writer.bytes();
  }
};

Result<void> checked(const Vocabulary& vocabulary) {
  const std::string bytes = vocabulary.bytes();
  const auto file = gguf::File::parse(test::asBytes(bytes));
  check(bool(file), file ? "" : file.error().message);
  return gguf::checkVocabulary(*file);
}

void accepts(const Vocabulary& vocabulary) {
  const auto result = checked(vocabulary);
  check(bool(result), result ? "" : result.error().message);
}

void refuses(const Vocabulary& vocabulary, ErrorKind kind, const std::string& subject, const std::string& phrase) {
  const auto result = checked(vocabulary);
  check(!result, "accepted, instead of: " + phrase);
  check(result.error().kind == kind && result.error().subject == subject, std::string(errorCode(result.error().kind)) + ": " + result.error().message);
  check(result.error().message.find(phrase) != std::string::npos, result.error().message);
}

template <class Change> Vocabulary with(Change change) {
  Vocabulary vocabulary;
  change(vocabulary);
  return vocabulary;
}

Vocabulary withKey(std::function<void(GgufWriter&)> more) {
  Vocabulary vocabulary;
  vocabulary.more = std::move(more);
  return vocabulary;
}

const Test kinds{"vocabulary: each tokenizer needs its own keys", [] {
  accepts({});
  accepts(with([](auto& v) { v.types.clear(), v.scores.clear(); }));
  accepts(with([](auto& v) { v.model = "llama", v.pre = "", v.merges.clear(); }));
  accepts(with([](auto& v) { v.model = "gemma4", v.pre = ""; }));
  refuses(with([](auto& v) { v.model = "bert"; }), ErrorKind::Unsupported, "tokenizer.ggml.model", "bert");
  refuses(with([](auto& v) { v.model = ""; }), ErrorKind::Invalid, "tokenizer.ggml.model", "missing");
  refuses(with([](auto& v) { v.pre = "martian\n"; }), ErrorKind::Unsupported, "tokenizer.ggml.pre", "martian\\x0a");
  refuses(with([](auto& v) { v.pre = ""; }), ErrorKind::Unsupported, "tokenizer.ggml.pre", "missing");
  refuses(with([](auto& v) { v.merges.clear(); }), ErrorKind::Invalid, "tokenizer.ggml.merges", "missing");
  refuses(with([](auto& v) { v.model = "gemma4", v.merges.clear(); }), ErrorKind::Invalid, "tokenizer.ggml.merges", "missing");
  refuses(with([](auto& v) { v.model = "llama", v.scores.clear(); }), ErrorKind::Invalid, "tokenizer.ggml.scores", "missing");
}};

const Test goldenVocabularies{"vocabulary: every golden tokenizer is accepted", [] {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden("tokenizer/small"))) {
    if (entry.path().extension() != ".gguf") continue;
    const auto file = gguf::File::open(entry.path().string());
    check(bool(file), file ? "" : file.error().message);
    const auto result = gguf::checkVocabulary(*file);
    check(bool(result), result ? "" : entry.path().filename().string() + ": " + result.error().message);
    ++count;
  }
  check(count >= 5, std::to_string(count) + " tokenizers");
}};

const Test tokens{"vocabulary: tokens are distinct UTF-8 with a type and a finite score each", [] {
  refuses(with([](auto& v) { v.tokens[3] = "\xed\xa0\x80"; }), ErrorKind::Invalid, "tokenizer.ggml.tokens", "token 3 is not UTF-8");
  refuses(with([](auto& v) { v.tokens[3] = "b"; }), ErrorKind::Invalid, "tokenizer.ggml.tokens", "token 3 appears twice");
  refuses(with([](auto& v) { v.tokens.push_back("c"); }), ErrorKind::Inconsistent, "tokenizer.ggml.token_type", "4 elements for 5");
  refuses(with([](auto& v) { v.types[1] = 7; }), ErrorKind::Invalid, "tokenizer.ggml.token_type", "token 1 has the type 7");
  refuses(with([](auto& v) { v.types[1] = -1; }), ErrorKind::Invalid, "tokenizer.ggml.token_type", "negative");
  refuses(with([](auto& v) { v.scores.pop_back(); }), ErrorKind::Inconsistent, "tokenizer.ggml.scores", "3 elements for 4");
  refuses(with([](auto& v) { v.scores[0] = 1e38f * 10; }), ErrorKind::Invalid, "tokenizer.ggml.scores", "finite");
}};

const Test merges{"vocabulary: a merge has two parts that are tokens", [] {
  refuses(with([](auto& v) { v.merges[0] = "ab"; }), ErrorKind::Invalid, "tokenizer.ggml.merges", "two parts");
  refuses(with([](auto& v) { v.merges[0] = "a "; }), ErrorKind::Invalid, "tokenizer.ggml.merges", "two parts");
  refuses(with([](auto& v) { v.merges[0] = ""; }), ErrorKind::Invalid, "tokenizer.ggml.merges", "two parts");
  refuses(with([](auto& v) { v.merges[0] = "a \x1b"; }), ErrorKind::Invalid, "tokenizer.ggml.merges", "needs \"\\x1b\"");
  accepts(with([](auto& v) { v.tokens[3] = " ", v.merges[0] = "  a"; })); // the first part may itself be a space
}};

const Test ids{"vocabulary: special ids, flags and templates", [] {
  accepts(withKey([](auto& w) { w.u32("tokenizer.ggml.eos_token_id", 3).template number<int32_t>("tokenizer.ggml.fim_pre_token_id", 0); }));
  refuses(withKey([](auto& w) { w.u32("tokenizer.ggml.eos_token_id", 4); }), ErrorKind::Invalid, "tokenizer.ggml.eos_token_id", "no token 4");
  refuses(withKey([](auto& w) { w.template number<int32_t>("tokenizer.ggml.mask_token_id", -1); }), ErrorKind::Invalid, "tokenizer.ggml.mask_token_id", "negative");
  refuses(withKey([](auto& w) { w.text("tokenizer.ggml.bos_token_id", "1"); }), ErrorKind::Invalid, "tokenizer.ggml.bos_token_id", "integer");
  refuses(withKey([](auto& w) { w.u32("tokenizer.ggml.eos_token_id", 5).tensor("token_embd.weight", {4, 6}, 0, std::string(96, '\0')); }),
          ErrorKind::Inconsistent, "token_embd.weight", "tokenizer.ggml.eos_token_id = 5");
  refuses(withKey([](auto& w) { w.template numbers<int32_t>("tokenizer.ggml.suppress_tokens", {1, 9}); }), ErrorKind::Invalid, "tokenizer.ggml.suppress_tokens",
          "no token 9");
  refuses(withKey([](auto& w) { w.text("tokenizer.ggml.add_bos_token", "yes"); }), ErrorKind::Invalid, "tokenizer.ggml.add_bos_token", "boolean");
  accepts(withKey([](auto& w) { w.text("tokenizer.chat_template", "{{ x }}").text("tokenizer.chat_template.tool_use", "y"); }));
  refuses(withKey([](auto& w) { w.u32("tokenizer.chat_template.tool_use", 1); }), ErrorKind::Invalid, "tokenizer.chat_template.tool_use", "string");
  refuses(withKey([](auto& w) { w.text("tokenizer.chat_template", "\xff"); }), ErrorKind::Invalid, "tokenizer.chat_template", "UTF-8");
  refuses(withKey([](auto& w) { w.u32("qwen3.vocab_size", 3); }), ErrorKind::Inconsistent, "qwen3.vocab_size", "4 tokens");
  accepts(withKey([](auto& w) { w.u32("qwen3.vocab_size", 8); }));
}};

} // namespace
