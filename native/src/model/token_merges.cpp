#include "model/token_merges.hpp"

#include "base/flat_map.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace mashbox::model {
namespace {

using Ids = FlatMap<std::string_view, int32_t>;
using Merge = grammar::TokenMerges::Merge;

enum TokenType : uint64_t { Normal = 1, Byte = 6 };

/// Bytes of the UTF-8 character that begins at `from`.
size_t characterSize(std::string_view text, size_t from) {
  size_t size = 1;
  while (from + size < text.size() && (text[from + size] & 0xc0) == 0x80) ++size;
  return size;
}

std::vector<Merge> listed(const gguf::File& file, const Ids& ids) {
  std::vector<Merge> merges;
  const auto lines = file.requireStrings("tokenizer.ggml.merges");
  if (!lines) return merges;
  merges.reserve(lines->size());
  std::string joined;
  for (const std::string_view line : *lines) {
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos) continue;
    const auto left = line.substr(0, space), right = line.substr(space + 1);
    joined.assign(left).append(right);
    const int32_t *first = ids.find(left), *second = ids.find(right), *both = ids.find(joined);
    if (first != nullptr && second != nullptr && both != nullptr) merges.push_back({*first, *second, *both});
  }
  return merges;
}

/// Any two tokens that together are one; the better its score, the sooner. Of equal ones the longer left half comes first.
std::vector<Merge> scored(const gguf::File& file, std::span<const std::string_view> tokens, std::span<const int32_t> normal, const Ids& ids) {
  const gguf::Value* value = file.find("tokenizer.ggml.scores");
  const auto* array = value == nullptr ? nullptr : std::get_if<gguf::Array>(value);
  const auto* scores = array == nullptr ? nullptr : std::get_if<std::vector<double>>(&array->values);
  if (scores == nullptr || scores->size() != tokens.size()) return {};
  std::vector<std::tuple<double, size_t, size_t, size_t, Merge>> found; // −score, −characters of both halves, order
  for (const int32_t id : normal) {
    const std::string_view text = tokens[static_cast<size_t>(id)];
    size_t characters = 0;
    for (size_t i = 0; i < text.size(); i += characterSize(text, i)) ++characters;
    size_t before = 0;
    for (size_t i = characterSize(text, 0); i < text.size(); i += characterSize(text, i)) {
      ++before;
      const int32_t *left = ids.find(text.substr(0, i)), *right = ids.find(text.substr(i));
      if (left != nullptr && right != nullptr)
        found.emplace_back(-(*scores)[static_cast<size_t>(id)], SIZE_MAX - before, SIZE_MAX - (characters - before), static_cast<size_t>(id), Merge{*left, *right, id});
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a), std::get<3>(a)) < std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b), std::get<3>(b));
  });
  std::vector<Merge> merges;
  merges.reserve(found.size());
  for (const auto& entry : found) merges.push_back(std::get<4>(entry));
  return merges;
}

} // namespace

grammar::TokenMerges tokenMerges(const gguf::File& file) {
  constexpr std::string_view typesKey = "tokenizer.ggml.token_type";
  const auto tokens = file.requireStrings("tokenizer.ggml.tokens");
  const auto model = file.requireString("tokenizer.ggml.model");
  if (!tokens || !model) return {};
  std::vector<uint64_t> types(tokens->size(), Normal);
  if (file.find(typesKey) != nullptr)
    if (auto read = file.requireUints(typesKey, tokens->size())) types = *std::move(read);

  grammar::TokenMerges result;
  Ids ids(tokens->size());
  std::vector<int32_t> normal, bytes;
  for (size_t i = 0; i < tokens->size(); ++i) {
    const std::string_view token = (*tokens)[i];
    const auto id = static_cast<int32_t>(i);
    if (types[i] == Byte) bytes.push_back(id);
    if (types[i] != Normal || token.empty()) continue;
    ids.insert(token, id);
    normal.push_back(id);
    if (characterSize(token, 0) == token.size()) result.symbols.push_back(id);
  }
  result.symbols.insert(result.symbols.end(), bytes.begin(), bytes.end());
  result.merges = *model == "llama" ? scored(file, *tokens, normal, ids) : listed(file, ids);
  return result;
}

} // namespace mashbox::model
