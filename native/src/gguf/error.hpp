#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace mashbox::gguf {

/// "key <name>: <why>", with the name escaped.
Error keyError(ErrorKind kind, std::string_view key, const std::string& why);
/// "tensor <name>: <why>", with the name escaped.
Error tensorError(ErrorKind kind, std::string_view name, const std::string& why);

} // namespace mashbox::gguf
