#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mashbox::test {

/// Builds GGUF files for tests: well formed unless told otherwise.
/// `GgufWriter().text("general.architecture", "qwen3").tensor("t", {32}, 0, data).bytes()`
class GgufWriter {
public:
  uint32_t version = 3;
  uint64_t alignment = 32; ///< of the data; `u32("general.alignment", …)` says so in the file

  GgufWriter& raw(std::string_view key, uint32_t type, std::string_view value) {
    ++keys_;
    append(metadata_, key);
    append(metadata_, type);
    metadata_ += value;
    return *this;
  }
  GgufWriter& text(std::string_view key, std::string_view value) { return raw(key, 8, encoded(value)); }
  template <class T> GgufWriter& number(std::string_view key, T value) {
    std::string bytes;
    append(bytes, value);
    return raw(key, typeOf<T>(), bytes);
  }
  GgufWriter& u32(std::string_view key, uint32_t value) { return number(key, value); }
  GgufWriter& f32(std::string_view key, float value) { return number(key, value); }
  GgufWriter& flag(std::string_view key, bool value) { return raw(key, 7, std::string(1, value ? '\1' : '\0')); }
  template <class T> GgufWriter& numbers(std::string_view key, const std::vector<T>& values) {
    std::string bytes = arrayHead(typeOf<T>(), values.size());
    for (T value : values) append(bytes, value);
    return raw(key, 9, bytes);
  }
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = arrayHead(8, values.size());
    for (const auto& value : values) bytes += encoded(value);
    return raw(key, 9, bytes);
  }
  /// Lets the header announce another number of keys or tensors than there are.
  GgufWriter& announce(uint64_t tensors, uint64_t keys) {
    announced_ = {tensors, keys};
    overridden_ = true;
    return *this;
  }
  /// `data` follows the data of the tensors before it at the next multiple of the alignment.
  GgufWriter& tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, std::string_view data) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    const uint64_t offset = data_.size();
    data_ += data;
    return tensorAt(name, dims, type, offset);
  }
  /// A tensor table entry with any offset and no data of its own.
  GgufWriter& tensorAt(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
    ++tensors_;
    append(infos_, name);
    append(infos_, static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) append(infos_, dim);
    append(infos_, type);
    append(infos_, offset);
    return *this;
  }

  std::string bytes() const {
    std::string out = "GGUF";
    append(out, version);
    append(out, overridden_ ? announced_.first : tensors_);
    append(out, overridden_ ? announced_.second : keys_);
    out += metadata_ + infos_;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data_;
  }

  static std::string encoded(std::string_view value) {
    std::string out;
    append(out, value);
    return out;
  }
  static std::string arrayHead(uint32_t type, uint64_t count) {
    std::string out;
    append(out, type);
    append(out, count);
    return out;
  }
  template <class T> static uint32_t typeOf() {
    if constexpr (std::is_same_v<T, uint8_t>) return 0;
    else if constexpr (std::is_same_v<T, int8_t>) return 1;
    else if constexpr (std::is_same_v<T, uint16_t>) return 2;
    else if constexpr (std::is_same_v<T, int16_t>) return 3;
    else if constexpr (std::is_same_v<T, uint32_t>) return 4;
    else if constexpr (std::is_same_v<T, int32_t>) return 5;
    else if constexpr (std::is_same_v<T, float>) return 6;
    else if constexpr (std::is_same_v<T, uint64_t>) return 10;
    else if constexpr (std::is_same_v<T, int64_t>) return 11;
    else {
      static_assert(std::is_same_v<T, double>, "not a GGUF number");
      return 12;
    }
  }

private:
  template <class T> static void append(std::string& out, T value) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      append(out, static_cast<uint64_t>(value.size()));
      out += value;
    } else {
      char bytes[sizeof value];
      std::memcpy(bytes, &value, sizeof value);
      out.append(bytes, sizeof value);
    }
  }

  uint64_t keys_ = 0, tensors_ = 0;
  std::pair<uint64_t, uint64_t> announced_;
  bool overridden_ = false;
  std::string metadata_, infos_, data_;
};

/// The bytes as `gguf::File::parse` wants them; `text` must outlive the result.
inline std::span<const std::byte> asBytes(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

} // namespace mashbox::test
