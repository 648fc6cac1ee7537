#pragma once

#include "base/result.hpp"
#include "quant/format.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mashbox::gguf {

/// Types of metadata values by their GGUF id.
enum class ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };

/// A metadata array: its numbers are widened to i64 / u64 / f64, its strings stay views into the file.
struct Array {
  ValueType elementType;
  std::variant<std::vector<int64_t>, std::vector<uint64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string_view>> values;
  size_t size() const;
};

using Value = std::variant<int64_t, uint64_t, double, bool, std::string_view, Array>;

struct Entry {
  std::string_view key;
  Value value;
};

struct Tensor {
  std::string_view name;
  const quant::Format* format;
  uint32_t rank;
  std::array<uint64_t, 4> dims; ///< dims[0] is the contiguous one; unused ones are 1
  const std::byte* data;        ///< inside the mapped file, a multiple of at least 8 bytes from its start
  uint64_t bytes;

  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
  uint64_t rowBytes() const { return quant::rowBytes(*format, dims[0]); }
  /// The part [first, first + count) of the last dimension above 1: rows of a matrix, values of a vector (of a type without blocks).
  Tensor part(uint64_t first, uint64_t count) const;
};

/// A GGUF v2/v3 model, mapped read-only; split models are opened by their first part. Every length, offset and count has
/// been checked against the file before anything was allocated or read (native/fuzz proves it). Strings and tensor data
/// live as long as the File. Error messages are one line of printable ASCII.
class File {
public:
  static Result<File> open(const std::string& path);
  /// The same checks over bytes in memory (one part only); the bytes must outlive the File.
  static Result<File> parse(std::span<const std::byte> bytes);

  File(File&&) noexcept;
  File& operator=(File&&) noexcept;
  ~File();

  const Value* find(std::string_view key) const;
  const Tensor* tensor(std::string_view name) const;
  std::span<const Entry> entries() const; ///< all metadata (of the first part), in file order
  std::span<const Tensor> tensors() const; ///< in file order, part after part
  std::string_view architecture() const; ///< `general.architecture`, not empty
  uint64_t tensorBytes() const;

  /// Typed reads, lenient in the numeric width; an error names the key. Floats must be finite.
  Result<uint64_t> requireUint(std::string_view key) const;
  Result<uint64_t> uintOr(std::string_view key, uint64_t fallback) const;
  Result<double> requireFloat(std::string_view key) const;
  Result<double> floatOr(std::string_view key, double fallback) const;
  Result<bool> boolOr(std::string_view key, bool fallback) const;
  Result<std::string_view> requireString(std::string_view key) const;
  /// An array of strings, whatever its length.
  Result<std::span<const std::string_view>> requireStrings(std::string_view key) const;
  /// A per-layer key: a scalar stands for `count` equal values; an array must have `count` elements. The caller bounds `count`.
  Result<std::vector<uint64_t>> requireUints(std::string_view key, size_t count) const;

private:
  struct Impl;
  explicit File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace mashbox::gguf
