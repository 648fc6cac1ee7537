#include "gguf/vocabulary.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "gguf/error.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace mashbox::gguf {
namespace {

using Strings = std::span<const std::string_view>;
using TokenSet = std::unordered_set<std::string_view, KeyedHash>;

constexpr std::string_view tokensKey = "tokenizer.ggml.tokens", mergesKey = "tokenizer.ggml.merges";

/// Pre-tokenizers whose splitting rules are known, those of src/tokenizer/PreTokenizers.ts. A wrong splitter degrades a model
/// silently, so others are refused by name.
constexpr std::string_view preTokenizers[] = {
  "qwen2", "deepseek-r1-qwen", "hunyuan", "megrez", "kormo", "f2llmv2", "solar-open", "stablelm2",
  "qwen35",
  "llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "lfm2",
  "glm4", "chatglm-bpe",
  "smollm", "refact", "command-r", "codeshell", "exaone", "starcoder",
  "gpt-2", "phi-2", "mpt", "olmo", "exaone4", "gigachat",
  "gpt-4o", "llama4", "kanana2",
  "laguna", "tekken", "deepseek-v3",
};

enum class Kind { BytePairs, Scored, Gemma4 };

Result<Kind> readKind(const File& file) {
  constexpr std::string_view key = "tokenizer.ggml.model";
  const auto model = file.requireString(key);
  if (!model) return model.error();
  if (*model == "gpt2") return Kind::BytePairs;
  if (*model == "llama") return Kind::Scored;
  if (*model == "gemma4") return Kind::Gemma4;
  return keyError(ErrorKind::Unsupported, key, "the tokenizer \"" + escaped(*model) + "\" is not one of gpt2, llama, gemma4");
}

Result<void> checkPreTokenizer(const File& file) {
  constexpr std::string_view key = "tokenizer.ggml.pre";
  if (file.find(key) == nullptr)
    return keyError(ErrorKind::Unsupported, key, "it is missing, so nobody knows how to split text for this model");
  const auto name = file.requireString(key);
  if (!name) return name.error();
  if (std::find(std::begin(preTokenizers), std::end(preTokenizers), *name) == std::end(preTokenizers))
    return keyError(ErrorKind::Unsupported, key, "the pre-tokenizer \"" + escaped(*name) + "\" is unknown");
  return {};
}

Result<TokenSet> checkTokens(Strings tokens) {
  if (tokens.empty()) return keyError(ErrorKind::Invalid, tokensKey, "it is empty");
  TokenSet set;
  set.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!isUtf8(tokens[id])) return keyError(ErrorKind::Invalid, tokensKey, "token " + std::to_string(id) + " is not UTF-8");
    if (!set.insert(tokens[id]).second)
      return keyError(ErrorKind::Invalid, tokensKey, "the text of token " + std::to_string(id) + " appears twice");
  }
  return set;
}

/// The array of one integer or float per token under `key`; null where it is absent.
Result<const Array*> findPerToken(const File& file, std::string_view key, size_t tokens) {
  const Value* value = file.find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<Array>(value);
  if (array == nullptr) return keyError(ErrorKind::Invalid, key, "it must be an array");
  if (array->size() != tokens)
    return keyError(ErrorKind::Inconsistent, key,
                    "it has " + std::to_string(array->size()) + " elements for " + std::to_string(tokens) + " tokens");
  return array;
}

Result<void> checkTypes(const File& file, size_t tokens) {
  constexpr std::string_view key = "tokenizer.ggml.token_type";
  constexpr uint64_t largestType = 6;
  if (file.find(key) == nullptr) return {};
  if (auto array = findPerToken(file, key, tokens); !array) return array.error();
  const auto types = file.requireUints(key, tokens);
  if (!types) return types.error();
  const auto odd = std::find_if(types->begin(), types->end(), [](uint64_t type) { return type > largestType; });
  if (odd == types->end()) return {};
  const std::string token = std::to_string(odd - types->begin());
  return keyError(ErrorKind::Invalid, key, "token " + token + " has the type " + std::to_string(*odd) + ", which does not exist");
}

Result<void> checkScores(const File& file, size_t tokens, bool required) {
  constexpr std::string_view key = "tokenizer.ggml.scores";
  const auto array = findPerToken(file, key, tokens);
  if (!array) return array.error();
  if (*array == nullptr) return required ? keyError(ErrorKind::Invalid, key, "it is missing") : Result<void>();
  const auto* scores = std::get_if<std::vector<double>>(&(*array)->values);
  if (scores == nullptr) return keyError(ErrorKind::Invalid, key, "it must be an array of floats");
  if (!std::all_of(scores->begin(), scores->end(), [](double score) { return std::isfinite(score); }))
    return keyError(ErrorKind::Invalid, key, "a score is not finite");
  return {};
}

Result<void> checkMerges(const File& file, const TokenSet& tokens) {
  const auto merges = file.requireStrings(mergesKey);
  if (!merges) return merges.error();
  for (size_t rank = 0; rank < merges->size(); ++rank) {
    const std::string_view merge = (*merges)[rank];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size())
      return keyError(ErrorKind::Invalid, mergesKey, "merge " + std::to_string(rank) + " does not consist of two parts");
    for (const std::string_view part : {merge.substr(0, space), merge.substr(space + 1)})
      if (!tokens.contains(part))
        return keyError(ErrorKind::Invalid, mergesKey,
                        "merge " + std::to_string(rank) + " needs \"" + escaped(part) + "\", which is no token");
  }
  return {};
}

/// An id past the tokens that is still a row of the embedding means that the token list is too short.
Result<void> checkId(const File& file, std::string_view key, uint64_t id, size_t tokens) {
  if (id < tokens) return {};
  const Tensor* embedding = file.tensor("token_embd.weight");
  if (embedding != nullptr && id < embedding->dims[1])
    return tensorError(ErrorKind::Inconsistent, embedding->name,
                       "it has a row for " + escaped(key) + " = " + std::to_string(id) + ", but there are only " +
                         std::to_string(tokens) + " tokens");
  return keyError(ErrorKind::Invalid, key, "there is no token " + std::to_string(id) + " among " + std::to_string(tokens));
}

Result<void> checkIds(const File& file, size_t tokens) {
  for (const Entry& entry : file.entries()) {
    if (!entry.key.starts_with("tokenizer.ggml.") || !entry.key.ends_with("_token_id")) continue;
    const auto id = file.requireUint(entry.key);
    if (!id) return id.error();
    if (auto checked = checkId(file, entry.key, *id, tokens); !checked) return checked;
  }
  constexpr std::string_view suppressKey = "tokenizer.ggml.suppress_tokens";
  const Value* suppressed = file.find(suppressKey);
  if (suppressed == nullptr) return {};
  const auto* array = std::get_if<Array>(suppressed);
  if (array == nullptr) return keyError(ErrorKind::Invalid, suppressKey, "it must be an array");
  const auto ids = file.requireUints(suppressKey, array->size());
  if (!ids) return ids.error();
  for (const uint64_t id : *ids)
    if (auto checked = checkId(file, suppressKey, id, tokens); !checked) return checked;
  return {};
}

Result<void> checkFlags(const File& file) {
  for (const std::string_view key : {"tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_space_prefix",
                                     "tokenizer.ggml.remove_extra_whitespaces"})
    if (auto flag = file.boolOr(key, false); !flag) return flag.error();
  return {};
}

Result<void> checkTemplates(const File& file) {
  constexpr std::string_view key = "tokenizer.chat_template";
  for (const Entry& entry : file.entries()) {
    if (!entry.key.starts_with(key) || (entry.key.size() != key.size() && entry.key[key.size()] != '.')) continue;
    const auto text = file.requireString(entry.key);
    if (!text) return text.error();
    if (!isUtf8(*text)) return keyError(ErrorKind::Invalid, entry.key, "it is not UTF-8");
  }
  return {};
}

Result<void> checkVocabularySize(const File& file, size_t tokens) {
  const std::string key = std::string(file.architecture()) + ".vocab_size";
  const auto size = file.uintOr(key, tokens);
  if (!size) return size.error();
  if (*size >= tokens) return {};
  return keyError(ErrorKind::Inconsistent, key, "it is " + std::to_string(*size) + ", but there are " + std::to_string(tokens) + " tokens");
}

} // namespace

Result<void> checkVocabulary(const File& file) {
  const auto kind = readKind(file);
  if (!kind) return kind.error();
  const auto tokens = file.requireStrings(tokensKey);
  if (!tokens) return tokens.error();
  const auto set = checkTokens(*tokens);
  if (!set) return set.error();
  const size_t count = tokens->size();
  if (auto types = checkTypes(file, count); !types) return types;
  if (auto scores = checkScores(file, count, *kind == Kind::Scored); !scores) return scores;
  if (*kind != Kind::Scored)
    if (auto merges = checkMerges(file, *set); !merges) return merges;
  if (*kind == Kind::BytePairs)
    if (auto pre = checkPreTokenizer(file); !pre) return pre;
  if (auto ids = checkIds(file, count); !ids) return ids;
  if (auto flags = checkFlags(file); !flags) return flags;
  if (auto templates = checkTemplates(file); !templates) return templates;
  return checkVocabularySize(file, count);
}

} // namespace mashbox::gguf
