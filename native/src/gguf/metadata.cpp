#include "gguf/metadata.hpp"

#include "gguf/error.hpp"

#include <algorithm>
#include <numeric>

namespace mashbox::gguf {
namespace {

constexpr uint64_t largestArrayTotal = 1 << 26; // elements of all arrays of one file
constexpr uint64_t largestString = 1 << 30;
constexpr uint64_t largestKey = 65535;
constexpr uint64_t smallestEntry = 8 + 1 + 4 + 1; // length, name, type, value

class MetadataReader {
public:
  explicit MetadataReader(Cursor& cursor) : cursor_(cursor) {}

  Result<Metadata> read(uint64_t count) {
    metadata_.entries.reserve(std::min(count, cursor_.remaining() / smallestEntry));
    for (uint64_t i = 0; i < count; ++i) {
      const auto key = cursor_.takeName(largestKey, keyError, "number " + std::to_string(i));
      if (!key) return key.error();
      uint32_t type = 0;
      if (!cursor_.take(type)) return keyError(ErrorKind::Truncated, *key, "the file ends within its type");
      auto value = readValue(*key, type);
      if (!value) return value.error();
      metadata_.entries.push_back({*key, std::move(*value)});
    }
    if (auto sorted = sortKeys(); !sorted) return sorted.error();
    return std::move(metadata_);
  }

private:
  Result<void> sortKeys() {
    auto& order = metadata_.order;
    order.resize(metadata_.entries.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto key = [&](uint32_t i) { return metadata_.entries[i].key; };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    const auto twice = std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) == key(b); });
    if (twice != order.end()) return keyError(ErrorKind::Invalid, key(*twice), "it appears twice");
    return {};
  }

  static Error endsInValue(std::string_view key) { return keyError(ErrorKind::Truncated, key, "the file ends within its value"); }

  template <class Stored, class Wide> Result<Value> readNumber(std::string_view key) {
    Stored value{};
    if (!cursor_.take(value)) return endsInValue(key);
    return Value(static_cast<Wide>(value));
  }

  Result<Value> readBool(std::string_view key) {
    uint8_t byte = 0;
    if (!cursor_.take(byte)) return endsInValue(key);
    if (byte > 1) return keyError(ErrorKind::Invalid, key, "its boolean is " + std::to_string(byte) + ", neither 0 nor 1");
    return Value(byte == 1);
  }

  Result<Value> readString(std::string_view key) {
    const auto text = cursor_.takeString(largestString, keyError, key, "its string");
    if (!text) return text.error();
    return Value(*text);
  }

  Result<Value> readValue(std::string_view key, uint32_t type) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::U8: return readNumber<uint8_t, uint64_t>(key);
      case ValueType::I8: return readNumber<int8_t, int64_t>(key);
      case ValueType::U16: return readNumber<uint16_t, uint64_t>(key);
      case ValueType::I16: return readNumber<int16_t, int64_t>(key);
      case ValueType::U32: return readNumber<uint32_t, uint64_t>(key);
      case ValueType::I32: return readNumber<int32_t, int64_t>(key);
      case ValueType::U64: return readNumber<uint64_t, uint64_t>(key);
      case ValueType::I64: return readNumber<int64_t, int64_t>(key);
      case ValueType::F32: return readNumber<float, double>(key);
      case ValueType::F64: return readNumber<double, double>(key);
      case ValueType::Bool: return readBool(key);
      case ValueType::String: return readString(key);
      case ValueType::Array: return readArray(key);
    }
    return keyError(ErrorKind::Invalid, key, "its type " + std::to_string(type) + " does not exist");
  }

  Result<Value> readArray(std::string_view key) {
    uint32_t id = 0;
    uint64_t count = 0;
    if (!cursor_.take(id) || !cursor_.take(count)) return endsInValue(key);
    const auto type = static_cast<ValueType>(id);
    switch (type) {
      case ValueType::U8: return readNumbers<uint8_t, uint64_t>(key, type, count);
      case ValueType::I8: return readNumbers<int8_t, int64_t>(key, type, count);
      case ValueType::U16: return readNumbers<uint16_t, uint64_t>(key, type, count);
      case ValueType::I16: return readNumbers<int16_t, int64_t>(key, type, count);
      case ValueType::U32: return readNumbers<uint32_t, uint64_t>(key, type, count);
      case ValueType::I32: return readNumbers<int32_t, int64_t>(key, type, count);
      case ValueType::U64: return readNumbers<uint64_t, uint64_t>(key, type, count);
      case ValueType::I64: return readNumbers<int64_t, int64_t>(key, type, count);
      case ValueType::F32: return readNumbers<float, double>(key, type, count);
      case ValueType::F64: return readNumbers<double, double>(key, type, count);
      case ValueType::Bool: return readBools(key, count);
      case ValueType::String: return readStrings(key, count);
      case ValueType::Array: return keyError(ErrorKind::Unsupported, key, "arrays of arrays cannot be read");
    }
    return keyError(ErrorKind::Invalid, key, "its element type " + std::to_string(id) + " does not exist");
  }

  /// Must hold before memory for `count` elements is taken.
  Result<void> checkArray(std::string_view key, uint64_t count, uint64_t smallestElement) {
    if (count > largestArrayTotal - arrayTotal_)
      return keyError(ErrorKind::Invalid, key,
                      "its array has " + std::to_string(count) + " elements; all arrays together may have " +
                        std::to_string(largestArrayTotal));
    if (count * smallestElement > cursor_.remaining())
      return keyError(ErrorKind::Truncated, key, "the file ends within its array of " + std::to_string(count) + " elements");
    arrayTotal_ += count;
    return {};
  }

  template <class Stored, class Wide> Result<Value> readNumbers(std::string_view key, ValueType type, uint64_t count) {
    if (auto fits = checkArray(key, count, sizeof(Stored)); !fits) return fits.error();
    std::vector<Wide> values(count);
    for (Wide& value : values) {
      Stored element{};
      if (!cursor_.take(element)) return endsInValue(key);
      value = static_cast<Wide>(element);
    }
    return Value(Array{type, std::move(values)});
  }

  Result<Value> readBools(std::string_view key, uint64_t count) {
    if (auto fits = checkArray(key, count, 1); !fits) return fits.error();
    std::vector<bool> values(count);
    for (uint64_t i = 0; i < count; ++i) {
      uint8_t byte = 0;
      if (!cursor_.take(byte)) return endsInValue(key);
      if (byte > 1)
        return keyError(ErrorKind::Invalid, key, "boolean " + std::to_string(i) + " is " + std::to_string(byte) + ", neither 0 nor 1");
      values[i] = byte == 1;
    }
    return Value(Array{ValueType::Bool, std::move(values)});
  }

  Result<Value> readStrings(std::string_view key, uint64_t count) {
    if (auto fits = checkArray(key, count, sizeof(uint64_t)); !fits) return fits.error();
    std::vector<std::string_view> values(count);
    for (std::string_view& value : values) {
      const auto text = cursor_.takeString(largestString, keyError, key, "an element");
      if (!text) return text.error();
      value = *text;
    }
    return Value(Array{ValueType::String, std::move(values)});
  }

  Cursor& cursor_;
  uint64_t arrayTotal_ = 0;
  Metadata metadata_;
};

} // namespace

const Value* Metadata::find(std::string_view key) const {
  const auto at =
    std::lower_bound(order.begin(), order.end(), key, [&](uint32_t i, std::string_view wanted) { return entries[i].key < wanted; });
  return at != order.end() && entries[*at].key == key ? &entries[*at].value : nullptr;
}

Result<Metadata> readMetadata(Cursor& cursor, uint64_t count) { return MetadataReader(cursor).read(count); }

} // namespace mashbox::gguf
