#include "model/vocabulary.hpp"

#include "model/keys.hpp"

#include <algorithm>

namespace mashbox::model {
namespace {

constexpr size_t MostTokens = 1 << 24;

Error wrong(ErrorKind kind, std::string_view key, const std::string& message) {
  return Error{kind, std::string(key) + ": " + message, std::string(key)};
}

/// The array under `key`; null when the key is absent.
Result<const gguf::Array*> arrayOf(const gguf::File& file, std::string_view key) {
  const gguf::Value* value = file.find(key);
  if (!value) return nullptr;
  const auto* array = std::get_if<gguf::Array>(value);
  if (!array) return wrong(ErrorKind::Invalid, key, "not an array");
  return array;
}

/// Null when the key is absent.
Result<const std::vector<std::string_view>*> stringsOf(const gguf::File& file, std::string_view key) {
  const auto array = arrayOf(file, key);
  if (!array) return array.error();
  if (!*array) return nullptr;
  const auto* strings = std::get_if<std::vector<std::string_view>>(&(*array)->values);
  if (!strings) return wrong(ErrorKind::Invalid, key, "not an array of strings");
  return strings;
}

Result<void> checkNumbers(const gguf::File& file, std::string_view key, size_t count, bool required) {
  const auto array = arrayOf(file, key);
  if (!array) return array.error();
  if (!*array) return required ? Result<void>(wrong(ErrorKind::Invalid, key, "the key is missing")) : Result<void>();
  if (std::holds_alternative<std::vector<std::string_view>>((*array)->values) || std::holds_alternative<std::vector<bool>>((*array)->values))
    return wrong(ErrorKind::Invalid, key, "not an array of numbers");
  if ((*array)->size() != count)
    return wrong(ErrorKind::Invalid, key, std::to_string((*array)->size()) + " elements for " + std::to_string(count) + " tokens");
  return {};
}

Result<void> checkMerges(const gguf::File& file) {
  constexpr std::string_view Key = "tokenizer.ggml.merges";
  const auto merges = stringsOf(file, Key);
  if (!merges) return merges.error();
  if (!*merges) return wrong(ErrorKind::Invalid, Key, "the key is missing");
  const auto broken = std::find_if((*merges)->begin(), (*merges)->end(), [](std::string_view merge) {
    const size_t space = merge.find(' ', 1);
    return space == std::string_view::npos || space + 1 == merge.size();
  });
  if (broken != (*merges)->end())
    return wrong(ErrorKind::Invalid, Key, "merge " + std::to_string(broken - (*merges)->begin()) + " does not have two parts");
  return {};
}

} // namespace

Result<uint32_t> checkVocabulary(const gguf::File& file) {
  constexpr std::string_view ModelKey = "tokenizer.ggml.model", TokensKey = "tokenizer.ggml.tokens";
  const auto model = file.requireString(ModelKey);
  if (!model) return model.error();
  const bool merges = *model == "gpt2", scores = *model == "llama";
  if (!merges && !scores) return wrong(ErrorKind::Unsupported, ModelKey, "\"" + printable(*model) + "\" is not one of gpt2, llama");

  const auto tokens = stringsOf(file, TokensKey);
  if (!tokens) return tokens.error();
  if (!*tokens) return wrong(ErrorKind::Invalid, TokensKey, "the key is missing");
  const size_t count = (*tokens)->size();
  if (count == 0 || count > MostTokens) return wrong(ErrorKind::Invalid, TokensKey, std::to_string(count) + " tokens");

  if (auto checked = checkNumbers(file, "tokenizer.ggml.token_type", count, false); !checked) return checked.error();
  if (auto checked = checkNumbers(file, "tokenizer.ggml.scores", count, scores); !checked) return checked.error();
  if (merges)
    if (auto checked = checkMerges(file); !checked) return checked.error();
  if (file.find("tokenizer.chat_template"))
    if (auto text = file.requireString("tokenizer.chat_template"); !text) return text.error();
  return static_cast<uint32_t>(count);
}

Result<void> checkSpecialTokens(const gguf::File& file, uint32_t tokens, uint64_t embeddingRows) {
  for (const std::string_view name : {"bos", "eos", "eot", "eom", "unknown", "padding"}) {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    if (!file.find(key)) continue;
    const auto id = file.requireUint(key);
    if (!id) return id.error();
    if (*id < tokens) continue;
    const std::string what = std::to_string(*id) + " is not one of " + std::to_string(tokens) + " tokens";
    if (*id < embeddingRows) return wrong(ErrorKind::Inconsistent, "token_embd.weight", key + " = " + what + ", but a row here");
    return wrong(ErrorKind::Inconsistent, key, what);
  }
  return {};
}

} // namespace mashbox::model
