#include "gguf/file.hpp"
#include "gguf_writer.hpp"
#include "grammar/vocabulary.hpp"
#include "json.hpp"
#include "model/token_merges.hpp"
#include "model/token_texts.hpp"
#include "test.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace mashbox::test {
namespace {

using Ids = std::vector<int32_t>;

std::string spelled(const grammar::Vocabulary& vocabulary, const Ids& ids) {
  std::string text;
  for (const int32_t id : ids) text += vocabulary.bytes(id);
  return text;
}

std::string listed(const Ids& ids) {
  std::string text;
  for (const int32_t id : ids) text += std::to_string(id) + " ";
  return text;
}

/// Letters of the ASCII alphabet, with single spaces between words: what no pre-tokenizer cuts in a way that merges would not.
bool plainWords(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const bool letter = (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
    if (!letter && (text[i] != ' ' || i + 1 == text.size() || text[i + 1] == ' ')) return false;
  }
  return !text.empty();
}

/// Texts of a vocabulary's golden vectors, cut: all of them spell the text, words are cut as the tokenizer does, and so are most others.
void compareWithTokenizer(const std::string& name, bool spaced) {
  const auto file = gguf::File::open(golden("tokenizer/small/" + name + ".gguf"));
  check(bool(file), file ? "" : file.error().message);
  auto texts = model::tokenTexts(*file);
  check(bool(texts), texts ? "" : texts.error().message);
  const grammar::Vocabulary vocabulary(*std::move(texts), model::tokenMerges(*file));
  size_t all = 0, equal = 0, words = 0, longest = 0;
  const grammar::Vocabulary plain([&] { return *model::tokenTexts(*file); }());
  const Json vectors = Json::load(golden("tokenizer/small/" + name + ".json"));
  for (const Json& vector : vectors["agreed"].list()) {
    if (vector["add_special"].boolean()) continue;
    const Ids ids = vector["ids"].ints();
    const std::string text = (spaced ? " " : "") + vector["text"].string();
    if (vector["text"].string().empty() || spelled(vocabulary, ids) != text) continue; // special tokens
    const Ids cut = vocabulary.cut(text);
    check(spelled(vocabulary, cut) == text, name + ": the tokens do not spell \"" + text + "\"");
    ++all;
    equal += cut == ids;
    longest += plain.cut(text) == ids;
    if (!plainWords(vector["text"].string())) continue;
    ++words;
    check(cut == ids, name + ": \"" + text + "\" is " + listed(ids) + "and not " + listed(cut));
  }
  check(all > 150 && words > 5, name + ": only " + std::to_string(all) + " texts, " + std::to_string(words) + " of words");
  check(equal * 100 >= all * 85 && equal > longest,
        name + ": " + std::to_string(equal) + " of " + std::to_string(all) + " texts are cut alike, " + std::to_string(longest) + " by the longest tokens");
}

const Test bytePairs{"grammar: text is cut into tokens by the model's merges", [] {
  for (const char* name : {"qwen2", "llama-bpe", "gpt-2", "gpt-4o", "smollm"}) compareWithTokenizer(name, false);
}};

const Test scored{"grammar: text is cut into tokens by the model's scores", [] { compareWithTokenizer("spm-llama", true); }};

/// The tokens a, b, c, d, ab, bc, abc, abcd, and merges of them.
grammar::Vocabulary small(const std::vector<grammar::TokenMerges::Merge>& merges, Ids symbols = {0, 1, 2, 3}) {
  std::vector<grammar::TokenText> texts;
  for (const char* text : {"a", "b", "c", "d", "ab", "bc", "abc", "abcd"}) texts.push_back({text});
  return grammar::Vocabulary(std::move(texts), {std::move(symbols), merges});
}

const Test order{"grammar: of two merges the earlier one in the list comes first, of equal ones the leftmost", [] {
  check(small({{1, 2, 5}, {0, 1, 4}}).cut("abc") == Ids{0, 5}, "bc first");
  check(small({{0, 1, 4}, {1, 2, 5}}).cut("abc") == Ids{4, 2}, "ab first");
  check(small({{0, 1, 4}, {4, 2, 6}, {6, 3, 7}}).cut("abcdabc") == Ids{7, 6}, "all of it");
}};

const Test hostile{"grammar: merges that are broken, repeated or missing leave text that is spelled right", [] {
  check(small({}).cut("abcd") == Ids{7}, "without merges the longest token");
  check(small({{0, 1, 5}, {0, 1, 4}}).cut("ab") == Ids{4}, "a merge into a token that spells something else is none");
  check(small({{0, 1, 4}, {0, 1, 6}, {4, 4, 4}}).cut("ab") == Ids{4}, "the first of two");
  check(small({{-1, 1, 4}, {0, 1 << 30, 4}, {0, 1, -7}, {0, 1, 99}}).cut("ab") == Ids{0, 1}, "tokens that do not exist");
  check(small({{0, 1, 4}}, {0, 2}).cut("abcd") == Ids{7}, "a byte that is no symbol: the longest token");
  check(small({{0, 1, 4}}, {0, 1, 2, 3, -5, 400}).cut("abx") == Ids{4}, "a byte that no token has ends the text");

  GgufWriter writer;
  writer.text("general.architecture", "qwen3").text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  writer.texts("tokenizer.ggml.merges", {"", " ", "a", "a b c", "x y", "a  b", "a b"});
  const std::string bytes = writer.bytes();
  const auto file = gguf::File::parse(asBytes(bytes));
  check(bool(file), file ? "" : file.error().message);
  const auto read = model::tokenMerges(*file);
  check(read.merges.size() == 1 && read.merges[0].token == 2 && read.symbols == Ids{0, 1}, "one merge is whole");
}};

const Test linear{"grammar: a long text of one character is cut without quadratic time", [] {
  std::vector<grammar::TokenText> texts;
  texts.push_back({"a"});
  std::vector<grammar::TokenMerges::Merge> merges;
  for (int32_t i = 0; i < 8; ++i) {
    texts.push_back({std::string(size_t{2} << i, 'a')});
    merges.push_back({i, i, i + 1});
  }
  const grammar::Vocabulary vocabulary(std::move(texts), {{0}, merges});
  check(vocabulary.cut(std::string(1 << 18, 'a')) == Ids(1 << 10, 8), "256 each");
}};

} // namespace
} // namespace mashbox::test
