#pragma once

#include <string>
#include <string_view>

namespace mashbox {

/// `text` as one line of printable ASCII for a message: other bytes, quotes and backslashes become \xNN, and what is longer than
/// 100 bytes is cut off with "...".
std::string escaped(std::string_view text);

/// True for well-formed UTF-8: no overlong forms, surrogates or code points past U+10FFFF.
bool isUtf8(std::string_view text);

} // namespace mashbox
