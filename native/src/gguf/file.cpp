#include "gguf/file.hpp"

#include "base/text.hpp"
#include "gguf/error.hpp"
#include "gguf/mapping.hpp"
#include "gguf/part.hpp"
#include "gguf/split.hpp"
#include "gguf/tensor_table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace mashbox::gguf {
namespace {

constexpr std::string_view architectureKey = "general.architecture";
constexpr std::string_view splitCountKey = "split.count", splitNumberKey = "split.no", splitTensorsKey = "split.tensors.count";

constexpr uint64_t mostParts = 99999; // five digits in a part's name

std::string partOf(uint32_t part, uint32_t count) { return "part " + std::to_string(part) + " of " + std::to_string(count); }

/// Prefixes what went wrong in one part with the part's file name.
Error inPart(Error error, const std::string& path) {
  error.message = "file " + escaped(path.substr(path.find_last_of('/') + 1)) + ": " + error.message;
  return error;
}

Result<uint64_t> toUint(std::string_view key, const Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value)) {
    if (*number >= 0) return static_cast<uint64_t>(*number);
    return keyError(ErrorKind::Invalid, key, "it is " + std::to_string(*number) + "; it must not be negative");
  }
  return keyError(ErrorKind::Invalid, key, "it must be an integer");
}

Error missing(std::string_view key) { return keyError(ErrorKind::Invalid, key, "it is missing"); }

} // namespace

size_t Array::size() const {
  return std::visit([](const auto& all) { return all.size(); }, values);
}

struct File::Impl {
  std::vector<Mapping> mappings;
  Metadata metadata; ///< of the first part
  std::vector<Tensor> tensors;
  std::vector<uint32_t> tensorOrder; ///< indices of `tensors`, sorted by name
  std::string_view architecture;

  explicit Impl(Part first) : metadata(std::move(first.metadata)), tensors(std::move(first.tensors)) {}

  /// What only the whole model can tell.
  Result<void> finish() {
    auto order = orderByName(tensors);
    if (!order) return order.error();
    tensorOrder = std::move(*order);
    const Value* value = metadata.find(architectureKey);
    if (value == nullptr) return missing(architectureKey);
    const auto* text = std::get_if<std::string_view>(value);
    if (text == nullptr) return keyError(ErrorKind::Invalid, architectureKey, "it must be a string");
    if (text->empty()) return keyError(ErrorKind::Invalid, architectureKey, "it is empty");
    architecture = *text;
    return {};
  }

  /// A key of the split; `fallback` where it is absent.
  static Result<uint64_t> splitKey(const Metadata& metadata, std::string_view key, uint64_t fallback) {
    const Value* value = metadata.find(key);
    return value == nullptr ? Result<uint64_t>(fallback) : toUint(key, *value);
  }

  /// Opens part `number` (from 1) and takes its tensors over.
  Result<void> addPart(const SplitName& name, uint32_t number) {
    const std::string path = name.path(number);
    auto mapping = Mapping::open(path);
    if (!mapping) {
      const ErrorKind kind = mapping.error().kind == ErrorKind::NotFound ? ErrorKind::Inconsistent : mapping.error().kind;
      return keyError(kind, splitCountKey, partOf(number, name.count) + " is missing: " + mapping.error().message);
    }
    auto part = readPart(mapping->bytes());
    if (!part) return inPart(part.error(), path);
    if (auto same = checkPart(part->metadata, number, name.count); !same) return inPart(same.error(), path);
    std::move(part->tensors.begin(), part->tensors.end(), std::back_inserter(tensors));
    mappings.push_back(std::move(*mapping));
    return {};
  }

  static Result<void> checkPart(const Metadata& part, uint32_t number, uint32_t count) {
    const auto partNumber = splitKey(part, splitNumberKey, std::numeric_limits<uint64_t>::max());
    if (!partNumber) return partNumber.error();
    if (*partNumber != number - 1)
      return keyError(ErrorKind::Inconsistent, splitNumberKey, "it does not say that this is " + partOf(number, count));
    const auto partCount = splitKey(part, splitCountKey, 0);
    if (!partCount) return partCount.error();
    if (*partCount == count) return {};
    return keyError(ErrorKind::Inconsistent, splitCountKey,
                    "it is " + std::to_string(*partCount) + ", in the first part " + std::to_string(count));
  }

  /// Opens the parts after the first one, when there are any.
  Result<void> addParts(const std::string& path) {
    const auto count = splitKey(metadata, splitCountKey, 0);
    if (!count) return count.error();
    const auto number = splitKey(metadata, splitNumberKey, 0);
    if (!number) return number.error();
    if (*count <= 1) return {};
    if (*count > mostParts)
      return keyError(ErrorKind::Invalid, splitCountKey, "it is " + std::to_string(*count) + ", more than " + std::to_string(mostParts));
    if (*number >= *count)
      return keyError(ErrorKind::Invalid, splitNumberKey,
                      "it is " + std::to_string(*number) + " of " + std::to_string(*count) + " parts, which count from 0");
    const auto parts = static_cast<uint32_t>(*count);
    SplitName name;
    const bool named = parseSplitName(path, name);
    if (*number != 0)
      return keyError(ErrorKind::Inconsistent, splitNumberKey,
                      "this is " + partOf(static_cast<uint32_t>(*number) + 1, parts) + "; open the first part" +
                        (named ? ", " + escaped(name.path(1)) : ""));
    if (!named || name.number != 1 || name.count != parts)
      return keyError(ErrorKind::Inconsistent, splitCountKey,
                      "the model has " + std::to_string(parts) + " parts, so the file's name must end in " +
                        SplitName{"", 1, parts}.path(1));
    for (uint32_t part = 2; part <= parts; ++part)
      if (auto added = addPart(name, part); !added) return added;
    const auto announced = splitKey(metadata, splitTensorsKey, tensors.size());
    if (!announced) return announced.error();
    if (*announced == tensors.size()) return {};
    return keyError(ErrorKind::Inconsistent, splitTensorsKey,
                    "it is " + std::to_string(*announced) + ", but the parts have " + std::to_string(tensors.size()) + " tensors");
  }
};

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(const std::string& path) {
  auto mapping = Mapping::open(path);
  if (!mapping) return mapping.error();
  auto part = readPart(mapping->bytes());
  if (!part) return part.error();
  auto impl = std::make_unique<Impl>(std::move(*part));
  impl->mappings.push_back(std::move(*mapping));
  if (auto parts = impl->addParts(path); !parts) return parts.error();
  if (auto finished = impl->finish(); !finished) return finished.error();
  return File(std::move(impl));
}

Result<File> File::parse(std::span<const std::byte> bytes) {
  auto part = readPart(bytes);
  if (!part) return part.error();
  auto impl = std::make_unique<Impl>(std::move(*part));
  const auto count = Impl::splitKey(impl->metadata, splitCountKey, 0);
  if (!count) return count.error();
  if (*count > 1) return keyError(ErrorKind::Inconsistent, splitCountKey, "a part of a split model cannot be read alone");
  if (auto finished = impl->finish(); !finished) return finished.error();
  return File(std::move(impl));
}

const Value* File::find(std::string_view key) const { return impl_->metadata.find(key); }

const Tensor* File::tensor(std::string_view name) const {
  const auto& all = impl_->tensors;
  const auto& order = impl_->tensorOrder;
  const auto at =
    std::lower_bound(order.begin(), order.end(), name, [&](uint32_t i, std::string_view wanted) { return all[i].name < wanted; });
  return at != order.end() && all[*at].name == name ? &all[*at] : nullptr;
}

std::span<const Entry> File::entries() const { return impl_->metadata.entries; }
std::span<const Tensor> File::tensors() const { return impl_->tensors; }
std::string_view File::architecture() const { return impl_->architecture; }

Tensor Tensor::part(uint64_t first, uint64_t count) const {
  size_t last = rank - 1;
  while (last > 0 && dims[last] == 1) --last;
  const uint64_t each = bytes / dims[last];
  Tensor out = *this;
  out.dims[last] = count;
  out.data += first * each;
  out.bytes = count * each;
  return out;
}

uint64_t File::tensorBytes() const {
  uint64_t total = 0;
  for (const Tensor& tensor : tensors()) total += tensor.bytes;
  return total;
}

Result<uint64_t> File::requireUint(std::string_view key) const {
  const Value* value = find(key);
  return value == nullptr ? Result<uint64_t>(missing(key)) : toUint(key, *value);
}

Result<uint64_t> File::uintOr(std::string_view key, uint64_t fallback) const {
  return find(key) == nullptr ? Result<uint64_t>(fallback) : requireUint(key);
}

Result<double> File::requireFloat(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* number = std::get_if<double>(value)) {
    if (std::isfinite(*number)) return *number;
    return keyError(ErrorKind::Invalid, key, "it is not finite");
  }
  if (const auto* number = std::get_if<uint64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
  return keyError(ErrorKind::Invalid, key, "it must be a number");
}

Result<double> File::floatOr(std::string_view key, double fallback) const {
  return find(key) == nullptr ? Result<double>(fallback) : requireFloat(key);
}

Result<bool> File::boolOr(std::string_view key, bool fallback) const {
  const Value* value = find(key);
  if (value == nullptr) return fallback;
  if (const auto* flag = std::get_if<bool>(value)) return *flag;
  if (const auto* number = std::get_if<uint64_t>(value); number != nullptr && *number <= 1) return *number == 1;
  if (const auto* number = std::get_if<int64_t>(value); number != nullptr && (*number == 0 || *number == 1)) return *number == 1;
  return keyError(ErrorKind::Invalid, key, "it must be a boolean");
}

Result<std::string_view> File::requireString(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* text = std::get_if<std::string_view>(value)) return *text;
  return keyError(ErrorKind::Invalid, key, "it must be a string");
}

Result<std::span<const std::string_view>> File::requireStrings(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return missing(key);
  if (const auto* array = std::get_if<Array>(value))
    if (const auto* strings = std::get_if<std::vector<std::string_view>>(&array->values))
      return std::span<const std::string_view>(*strings);
  return keyError(ErrorKind::Invalid, key, "it must be an array of strings");
}

Result<std::vector<uint64_t>> File::requireUints(std::string_view key, size_t count) const {
  const Value* value = find(key);
  if (value == nullptr) return missing(key);
  const auto* array = std::get_if<Array>(value);
  if (array == nullptr) {
    if (const auto* flag = std::get_if<bool>(value)) return std::vector<uint64_t>(count, *flag ? 1 : 0);
    const auto number = toUint(key, *value);
    if (!number) return number.error();
    return std::vector<uint64_t>(count, *number);
  }
  const auto& values = array->values;
  if (std::holds_alternative<std::vector<double>>(values) || std::holds_alternative<std::vector<std::string_view>>(values))
    return keyError(ErrorKind::Invalid, key, "it must be an integer or an array of integers");
  if (array->size() != count)
    return keyError(ErrorKind::Inconsistent, key,
                    "it has " + std::to_string(array->size()) + " elements instead of " + std::to_string(count));
  if (const auto* numbers = std::get_if<std::vector<uint64_t>>(&values)) return *numbers;
  if (const auto* flags = std::get_if<std::vector<bool>>(&values)) return std::vector<uint64_t>(flags->begin(), flags->end());
  const auto& numbers = std::get<std::vector<int64_t>>(values);
  if (std::any_of(numbers.begin(), numbers.end(), [](int64_t n) { return n < 0; }))
    return keyError(ErrorKind::Invalid, key, "an element is negative");
  return std::vector<uint64_t>(numbers.begin(), numbers.end());
}

} // namespace mashbox::gguf
