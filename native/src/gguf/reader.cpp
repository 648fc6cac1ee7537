#include "gguf/reader.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

namespace mashbox::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF fields are read in place");

namespace {

constexpr uint64_t largestCount = 1 << 20;          // keys or tensors; real models have a few thousand
constexpr uint64_t largestArrayTotal = 1 << 26;     // elements of all arrays of one file
constexpr uint64_t largestString = 1 << 30;
constexpr uint64_t largestKey = 65535;
constexpr uint64_t largestTensorName = 63;
constexpr uint64_t largestAlignment = 1 << 20;
constexpr uint64_t smallestKey = 8 + 1 + 4 + 1;            // length, name, type, value
constexpr uint64_t smallestTensor = 8 + 1 + 4 + 8 + 4 + 8; // length, name, rank, one dimension, type, offset
constexpr uint64_t defaultAlignment = 32;
constexpr const char* alignmentKey = "general.alignment";

std::string number(uint64_t value) { return std::to_string(value); }

/// Error about the file as a whole or a header field.
Error fileError(ErrorKind kind, const std::string& why, const std::string& subject = "") { return {kind, why, subject}; }

/// Says who an error inside a key or tensor belongs to.
using Blame = Error (*)(ErrorKind, std::string_view, const std::string&);

bool startsWith(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// What the file may be when it is no GGUF; people meet these after a download went wrong.
std::string guessContents(std::string_view head) {
  if (head.starts_with("version https://git-lfs")) return "this is a Git LFS pointer: fetch the file itself, for example with `git lfs pull`";
  const std::string_view text = head.substr(std::min(head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), head.size()));
  if (startsWith(text, {"<!DOCTYPE", "<!doctype", "<html", "<HTML", "<head", "<?xml"}))
    return "this is a web page: the download got an error or log-in page instead of the model";
  if (text.starts_with("{")) return "this looks like JSON: the download got an answer of the server instead of the model";
  if (startsWith(head, {"lmgg", "ggml", "fmgg", "ggmf", "tjgg", "ggjt", "algg", "ggla"})) return "this is a model in the old GGML format: convert it to GGUF";
  if (head.starts_with("PK\x03\x04")) return "this is a zip archive, perhaps a PyTorch checkpoint";
  if (head.starts_with("\x1f\x8b")) return "this is a gzip archive: unpack it first";
  return "expected GGUF, found \"" + escaped(head.substr(0, 4)) + "\"";
}

class Reader {
public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<Part> read() {
    if (auto header = readHeader(); !header) return header.error();
    if (auto keys = readKeys(); !keys) return keys.error();
    if (auto alignment = readAlignment(); !alignment) return alignment.error();
    if (auto tensors = readTensors(); !tensors) return tensors.error();
    if (auto overlap = checkOverlap(); !overlap) return overlap.error();
    return std::move(part_);
  }

private:
  uint64_t remaining() const { return bytes_.size() - at_; }
  std::string_view rest() const { return {reinterpret_cast<const char*>(bytes_.data()) + at_, remaining()}; }

  /// The next little-endian number; false when the file ends before its last byte.
  template <class T> bool take(T& value) {
    if (remaining() < sizeof(T)) return false;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }

  static Error ended(const std::string& where) { return fileError(ErrorKind::Truncated, "the file ends too early, " + where); }

  Result<void> readHeader() {
    const std::string_view head = rest();
    if (head.size() < 4 && std::string_view("GGUF").starts_with(head))
      return ended("within the magic: it has " + number(head.size()) + " bytes");
    if (!head.starts_with("GGUF")) return fileError(ErrorKind::Invalid, "not a GGUF file, wrong magic: " + guessContents(head.substr(0, 256)), "magic");
    at_ = 4;
    uint32_t version = 0;
    if (!take(version)) return ended("within the version");
    if (version != 0 && (version & 0xffff) == 0)
      return fileError(ErrorKind::Unsupported, "the version reads as " + number(version) + ": this is a big-endian GGUF file; only little-endian ones can be read", "version");
    if (version == 0) return fileError(ErrorKind::Invalid, "GGUF version 0 does not exist", "version");
    if (version != 2 && version != 3)
      return fileError(ErrorKind::Unsupported, "GGUF version " + number(version) + " cannot be read; versions 2 and 3 can", "version");
    if (!take(tensorCount_)) return ended("within tensor_count");
    if (!take(keyCount_)) return ended("within metadata_kv_count");
    if (auto tensors = checkCount(tensorCount_, "tensor_count"); !tensors) return tensors;
    return checkCount(keyCount_, "metadata_kv_count");
  }

  static Result<void> checkCount(uint64_t count, const char* field) {
    if (count <= largestCount) return {};
    return fileError(ErrorKind::Invalid, std::string(field) + " is " + number(count) + "; more than " + number(largestCount) + " cannot be right", field);
  }

  /// A string of at most `longest` bytes; the message of an error calls it `what`.
  Result<std::string_view> takeString(uint64_t longest, Blame blame, std::string_view owner, const char* what) {
    uint64_t length = 0;
    if (!take(length)) return blame(ErrorKind::Truncated, owner, std::string("the file ends within the length of ") + what);
    if (length > longest) return blame(ErrorKind::Invalid, owner, std::string("the length of ") + what + " is " + number(length) + ", more than " + number(longest));
    if (length > remaining())
      return blame(ErrorKind::Truncated, owner, std::string("the file ends within ") + what + " of " + number(length) + " bytes");
    const std::string_view text = rest().substr(0, length);
    at_ += length;
    return text;
  }

  // Keys

  Result<void> readKeys() {
    part_.entries.reserve(std::min(keyCount_, remaining() / smallestKey));
    for (uint64_t i = 0; i < keyCount_; ++i) {
      const std::string ordinal = "number " + number(i);
      auto key = takeString(largestKey, keyError, ordinal, "its name");
      if (!key) return key.error();
      if (key->empty()) return keyError(ErrorKind::Invalid, ordinal, "its name is empty");
      if (!isUtf8(*key)) return keyError(ErrorKind::Invalid, *key, "its name is not UTF-8");
      if (key->find('\0') != std::string_view::npos) return keyError(ErrorKind::Invalid, *key, "its name contains a zero byte");
      uint32_t type = 0;
      if (!take(type)) return keyError(ErrorKind::Truncated, *key, "the file ends within its type");
      auto value = readValue(*key, type);
      if (!value) return value.error();
      part_.entries.push_back({*key, std::move(*value)});
    }
    return orderKeys();
  }

  Result<void> orderKeys() {
    auto& order = part_.entryOrder;
    order.resize(part_.entries.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto key = [&](uint32_t i) { return part_.entries[i].key; };
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
    const auto twice = std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key(a) == key(b); });
    if (twice != order.end()) return keyError(ErrorKind::Invalid, key(*twice), "it appears twice");
    return {};
  }

  template <class Stored, class Wide> Result<Value> readNumber(std::string_view key) {
    Stored value{};
    if (!take(value)) return keyError(ErrorKind::Truncated, key, "the file ends within its value");
    return Value(static_cast<Wide>(value));
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
      case ValueType::Bool: {
        uint8_t byte = 0;
        if (!take(byte)) return keyError(ErrorKind::Truncated, key, "the file ends within its value");
        if (byte > 1) return keyError(ErrorKind::Invalid, key, "its boolean is " + number(byte) + ", neither 0 nor 1");
        return Value(byte == 1);
      }
      case ValueType::String: {
        auto text = takeString(largestString, keyError, key, "its string");
        if (!text) return text.error();
        return Value(*text);
      }
      case ValueType::Array: return readArray(key);
    }
    return keyError(ErrorKind::Invalid, key, "its type " + number(type) + " does not exist");
  }

  Result<Value> readArray(std::string_view key) {
    uint32_t type = 0;
    uint64_t count = 0;
    if (!take(type) || !take(count)) return keyError(ErrorKind::Truncated, key, "the file ends within its array");
    switch (static_cast<ValueType>(type)) {
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
    return keyError(ErrorKind::Invalid, key, "its element type " + number(type) + " does not exist");
  }

  /// Must hold before memory for `count` elements is taken.
  Result<void> checkArray(std::string_view key, uint64_t count, uint64_t smallestElement) {
    if (count > largestArrayTotal - arrayTotal_)
      return keyError(ErrorKind::Invalid, key, "its array has " + number(count) + " elements; all arrays together may have " + number(largestArrayTotal));
    if (count * smallestElement > remaining())
      return keyError(ErrorKind::Truncated, key, "the file ends within its array of " + number(count) + " elements");
    arrayTotal_ += count;
    return {};
  }

  template <class Stored, class Wide> Result<Value> readNumbers(std::string_view key, uint32_t type, uint64_t count) {
    if (auto fits = checkArray(key, count, sizeof(Stored)); !fits) return fits.error();
    std::vector<Wide> values(count);
    for (Wide& value : values) {
      Stored element{};
      take(element);
      value = static_cast<Wide>(element);
    }
    return Value(Array{static_cast<ValueType>(type), std::move(values)});
  }

  Result<Value> readBools(std::string_view key, uint64_t count) {
    if (auto fits = checkArray(key, count, 1); !fits) return fits.error();
    std::vector<bool> values(count);
    for (uint64_t i = 0; i < count; ++i) {
      uint8_t byte = 0;
      take(byte);
      if (byte > 1) return keyError(ErrorKind::Invalid, key, "boolean " + number(i) + " is " + number(byte) + ", neither 0 nor 1");
      values[i] = byte == 1;
    }
    return Value(Array{ValueType::Bool, std::move(values)});
  }

  Result<Value> readStrings(std::string_view key, uint64_t count) {
    if (auto fits = checkArray(key, count, 8); !fits) return fits.error();
    std::vector<std::string_view> values(count);
    for (std::string_view& value : values) {
      auto text = takeString(largestString, keyError, key, "an element");
      if (!text) return text.error();
      value = *text;
    }
    return Value(Array{ValueType::String, std::move(values)});
  }

  Result<void> readAlignment() {
    const Value* value = part_.find(alignmentKey);
    if (value == nullptr) return {};
    const auto* alignment = std::get_if<uint64_t>(value);
    if (alignment == nullptr) return keyError(ErrorKind::Invalid, alignmentKey, "it must be an unsigned integer");
    if (!std::has_single_bit(*alignment) || *alignment < 8 || *alignment > largestAlignment)
      return keyError(ErrorKind::Invalid, alignmentKey, "it is " + number(*alignment) + "; it must be a power of two from 8 to " + number(largestAlignment));
    alignment_ = *alignment;
    return {};
  }

  // Tensors

  Result<void> readTensors() {
    const uint64_t room = std::min(tensorCount_, remaining() / smallestTensor);
    part_.tensors.reserve(room);
    offsets_.reserve(room);
    for (uint64_t i = 0; i < tensorCount_; ++i)
      if (auto tensor = readTensor(i); !tensor) return tensor;
    if (auto names = orderByName(part_.tensors); !names) return names.error();
    const uint64_t dataStart = (at_ + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t dataBytes = bytes_.size() > dataStart ? bytes_.size() - dataStart : 0;
    for (size_t i = 0; i < part_.tensors.size(); ++i) {
      Tensor& tensor = part_.tensors[i];
      if (offsets_[i] > dataBytes || tensor.bytes > dataBytes - offsets_[i])
        return tensorError(ErrorKind::Truncated, tensor.name,
                           "its " + number(tensor.bytes) + " bytes at offset " + number(offsets_[i]) + " reach past the end of the file, which has " +
                             number(dataBytes) + " bytes of data");
      tensor.data = bytes_.data() + dataStart + offsets_[i];
    }
    return {};
  }

  Result<void> readTensor(uint64_t index) {
    const std::string ordinal = "number " + number(index);
    auto name = takeString(largestTensorName, tensorError, ordinal, "its name");
    if (!name) return name.error();
    if (name->empty()) return tensorError(ErrorKind::Invalid, ordinal, "its name is empty");
    if (!isUtf8(*name)) return tensorError(ErrorKind::Invalid, *name, "its name is not UTF-8");
    if (name->find('\0') != std::string_view::npos) return tensorError(ErrorKind::Invalid, *name, "its name contains a zero byte");

    Tensor tensor{*name, nullptr, 0, {1, 1, 1, 1}, nullptr, 0};
    const auto end = [&] { return tensorError(ErrorKind::Truncated, *name, "the file ends within its description"); };
    if (!take(tensor.rank)) return end();
    if (tensor.rank < 1 || tensor.rank > 4)
      return tensorError(ErrorKind::Invalid, *name, "it has " + number(tensor.rank) + " dimensions; it must have 1 to 4");
    for (uint32_t d = 0; d < tensor.rank; ++d)
      if (!take(tensor.dims[d])) return end();
    uint32_t type = 0;
    uint64_t offset = 0;
    if (!take(type) || !take(offset)) return end();
    tensor.format = quant::findFormat(type);
    if (tensor.format == nullptr) return tensorError(ErrorKind::Invalid, *name, "its type " + number(type) + " is unknown or was removed from GGUF");
    if (auto sized = computeBytes(tensor); !sized) return sized;
    if (offset % alignment_ != 0)
      return tensorError(ErrorKind::Invalid, *name, "its offset " + number(offset) + " is not a multiple of the alignment " + number(alignment_));
    part_.tensors.push_back(tensor);
    offsets_.push_back(offset);
    return {};
  }

  static Result<void> computeBytes(Tensor& tensor) {
    constexpr uint64_t mostValues = std::numeric_limits<int64_t>::max() / 8; // no format has more than 8 bytes per value
    uint64_t values = 1;
    for (const uint64_t dim : tensor.dims) {
      if (dim == 0) return tensorError(ErrorKind::Invalid, tensor.name, "one of its dimensions is 0");
      if (dim > mostValues / values) return tensorError(ErrorKind::Invalid, tensor.name, "the product of its dimensions overflows");
      values *= dim;
    }
    if (tensor.dims[0] % tensor.format->blockLength != 0)
      return tensorError(ErrorKind::Invalid, tensor.name,
                         "its rows of " + number(tensor.dims[0]) + " values are no multiple of the " + number(tensor.format->blockLength) + " values of a " +
                           tensor.format->name + " block");
    tensor.bytes = values / tensor.format->blockLength * tensor.format->blockBytes;
    return {};
  }

  Result<void> checkOverlap() {
    std::vector<uint32_t> order(part_.tensors.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return offsets_[a] < offsets_[b]; });
    for (size_t i = 1; i < order.size(); ++i) {
      const Tensor& before = part_.tensors[order[i - 1]];
      if (offsets_[order[i]] < offsets_[order[i - 1]] + before.bytes)
        return tensorError(ErrorKind::Invalid, part_.tensors[order[i]].name, "its bytes overlap those of " + escaped(before.name));
    }
    return {};
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t tensorCount_ = 0, keyCount_ = 0, arrayTotal_ = 0;
  uint64_t alignment_ = defaultAlignment;
  std::vector<uint64_t> offsets_;
  Part part_;
};

} // namespace

Error keyError(ErrorKind kind, std::string_view key, const std::string& why) { return {kind, "key " + escaped(key) + ": " + why, escaped(key)}; }

Error tensorError(ErrorKind kind, std::string_view name, const std::string& why) {
  return {kind, "tensor " + escaped(name) + ": " + why, escaped(name)};
}

const Value* Part::find(std::string_view key) const {
  const auto at = std::lower_bound(entryOrder.begin(), entryOrder.end(), key, [&](uint32_t i, std::string_view wanted) { return entries[i].key < wanted; });
  return at != entryOrder.end() && entries[*at].key == key ? &entries[*at].value : nullptr;
}

Result<std::vector<uint32_t>> orderByName(std::span<const Tensor> tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name < tensors[b].name; });
  const auto twice =
    std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return tensors[a].name == tensors[b].name; });
  if (twice != order.end()) return tensorError(ErrorKind::Invalid, tensors[*twice].name, "it appears twice");
  return order;
}

Result<Part> readPart(std::span<const std::byte> bytes) { return Reader(bytes).read(); }

} // namespace mashbox::gguf
