#pragma once

#include "base/result.hpp"
#include "base/text.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace mashbox::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF fields are read in place");

/// `keyError` or `tensorError`: whose string it is that cannot be read.
using ErrorOf = Error (*)(ErrorKind, std::string_view, const std::string&);

/// A position in the bytes of a file that never passes their end.
class Cursor {
public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes() const { return bytes_; }
  uint64_t position() const { return at_; }
  uint64_t remaining() const { return bytes_.size() - at_; }
  std::string_view rest() const { return {reinterpret_cast<const char*>(bytes_.data()) + at_, remaining()}; }

  /// The next little-endian number; false, and nothing is taken, when the file ends before its last byte.
  template <class T> [[nodiscard]] bool take(T& value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  /// The next string, which may have `longest` bytes; an error calls it `what` of `owner`.
  Result<std::string_view> takeString(uint64_t longest, ErrorOf errorOf, std::string_view owner, const char* what) {
    uint64_t length = 0;
    if (!take(length)) return errorOf(ErrorKind::Truncated, owner, std::string("the file ends within the length of ") + what);
    if (length > longest)
      return errorOf(ErrorKind::Invalid, owner,
                     std::string("the length of ") + what + " is " + std::to_string(length) + ", more than " + std::to_string(longest));
    if (length > remaining())
      return errorOf(ErrorKind::Truncated, owner, std::string("the file ends within ") + what + " of " + std::to_string(length) + " bytes");
    const std::string_view text = rest().substr(0, length);
    at_ += length;
    return text;
  }

  /// The next name: not empty, UTF-8, without zero bytes. `ordinal` stands for it while it is not known.
  Result<std::string_view> takeName(uint64_t longest, ErrorOf errorOf, const std::string& ordinal) {
    auto name = takeString(longest, errorOf, ordinal, "its name");
    if (!name) return name;
    if (name->empty()) return errorOf(ErrorKind::Invalid, ordinal, "its name is empty");
    if (!isUtf8(*name)) return errorOf(ErrorKind::Invalid, *name, "its name is not UTF-8");
    if (name->find('\0') != std::string_view::npos) return errorOf(ErrorKind::Invalid, *name, "its name contains a zero byte");
    return name;
  }

private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

} // namespace mashbox::gguf
