#include "model/token_texts.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mashbox::model {
namespace {

enum TokenType : uint64_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

/// GPT-2's alphabet: printable bytes stand for themselves, the 68 others for the code points from U+0100 on.
class ByteAlphabet {
public:
  ByteAlphabet() {
    bytes_.fill(-1);
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      bytes_[static_cast<size_t>(printable ? byte : next++)] = static_cast<int16_t>(byte);
    }
  }

  /// A token with a character outside the alphabet stands for its own UTF-8.
  std::string decode(std::string_view text) const {
    std::string bytes;
    for (size_t i = 0; i < text.size();) {
      const auto lead = static_cast<uint8_t>(text[i]);
      const size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
      const uint32_t code = size == 1 ? lead : size == 2 ? (lead & 0x1fu) << 6 | (static_cast<uint8_t>(text[i + 1]) & 0x3fu) : UINT32_MAX;
      if (code < bytes_.size() && bytes_[code] >= 0) bytes.push_back(static_cast<char>(bytes_[code]));
      else return std::string(text);
      i += size;
    }
    return bytes;
  }

private:
  std::array<int16_t, 324> bytes_;
};

/// "<0x0A>" → the byte.
std::string byteOf(std::string_view token) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  if (token.size() != 6) return {};
  return std::string(1, static_cast<char>(digit(token[3]) * 16 + digit(token[4])));
}

/// U+2581 stands for a space.
std::string spaced(std::string_view token) {
  constexpr std::string_view mark = "\xe2\x96\x81";
  std::string text;
  for (size_t i = 0; i < token.size();) {
    const bool space = token.substr(i).starts_with(mark);
    text.push_back(space ? ' ' : token[i]);
    i += space ? mark.size() : 1;
  }
  return text;
}

} // namespace

Result<std::vector<grammar::TokenText>> tokenTexts(const gguf::File& file) {
  const auto tokens = file.requireStrings("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  const auto model = file.requireString("tokenizer.ggml.model");
  if (!model) return model.error();
  std::vector<uint64_t> types(tokens->size(), Normal);
  if (constexpr std::string_view key = "tokenizer.ggml.token_type"; file.find(key) != nullptr) {
    auto read = file.requireUints(key, tokens->size());
    if (!read) return std::move(read).error();
    types = *std::move(read);
  }
  const ByteAlphabet alphabet;
  const bool bytes = *model == "gpt2";
  std::vector<grammar::TokenText> texts(tokens->size());
  for (size_t id = 0; id < texts.size(); ++id) {
    const std::string_view token = (*tokens)[id];
    switch (types[id]) {
      case Unknown:
      case Control:
      case Unused: texts[id].text = false; break;
      case UserDefined: texts[id].bytes = token; break;
      case Byte: texts[id].bytes = byteOf(token); break;
      default: texts[id].bytes = bytes ? alphabet.decode(token) : spaced(token);
    }
  }
  return texts;
}

} // namespace mashbox::model
