#include "gguf/error.hpp"

#include "base/text.hpp"

namespace mashbox::gguf {
namespace {

Error about(ErrorKind kind, const char* what, std::string_view name, const std::string& why) {
  const std::string subject = escaped(name);
  return {kind, what + subject + ": " + why, subject};
}

} // namespace

Error keyError(ErrorKind kind, std::string_view key, const std::string& why) { return about(kind, "key ", key, why); }

Error tensorError(ErrorKind kind, std::string_view name, const std::string& why) { return about(kind, "tensor ", name, why); }

} // namespace mashbox::gguf
