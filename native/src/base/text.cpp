#include "base/text.hpp"

#include <cstdint>
#include <cstring>

namespace mashbox {

std::string escaped(std::string_view text) {
  constexpr size_t longest = 100;
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\')
      out += c;
    else
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  if (text.size() > longest) out += "...";
  return out;
}

bool isUtf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = at + text.size();
  const auto continues = [&](const unsigned char* byte) { return byte < end && (*byte & 0xc0) == 0x80; };
  while (at < end) {
    if (end - at >= 8) {
      uint64_t word;
      std::memcpy(&word, at, 8);
      if ((word & 0x8080808080808080) == 0) {
        at += 8;
        continue;
      }
    }
    if (*at < 0x80) {
      ++at;
    } else if (*at >= 0xc2 && *at < 0xe0) {
      if (!continues(at + 1)) return false;
      at += 2;
    } else if (*at >= 0xe0 && *at < 0xf0) {
      if (!continues(at + 1) || !continues(at + 2)) return false;
      if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] >= 0xa0)) return false;
      at += 3;
    } else if (*at >= 0xf0 && *at < 0xf5) {
      if (!continues(at + 1) || !continues(at + 2) || !continues(at + 3)) return false;
      if ((*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] >= 0x90)) return false;
      at += 4;
    } else {
      return false;
    }
  }
  return true;
}

} // namespace mashbox
