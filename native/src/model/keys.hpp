#pragma once

#include "gguf/file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace mashbox::model {

/// Reads the keys of one architecture. The first failure is kept and every later read answers with a harmless value, so that a
/// family's mapping is a plain list of reads.
class Keys {
public:
  explicit Keys(const gguf::File& file);

  /// `general.architecture`
  const std::string& architecture() const { return architecture_; }
  const gguf::File& file() const { return file_; }
  /// The full name of a key, for example `llama.block_count`.
  std::string name(std::string_view key) const;
  bool has(std::string_view key);
  /// A key that the mapping has looked at.
  bool seen(std::string_view key) const;

  /// A number in [1, limit].
  uint32_t count(std::string_view key, uint32_t limit);
  uint32_t countOr(std::string_view key, uint32_t limit, uint32_t fallback);
  /// A number, 0 where the key is absent.
  uint32_t countOrZero(std::string_view key, uint32_t limit);
  /// `layers` numbers in [least, limit]; one number stands for all.
  std::vector<uint32_t> countsPerLayer(std::string_view key, uint32_t layers, uint32_t limit, uint32_t least = 1);
  /// A finite number above 0.
  double positive(std::string_view key);
  double positiveOr(std::string_view key, double fallback);
  /// A finite number above 0, or 0 where it is 0 or absent, which means off.
  double positiveOrOff(std::string_view key);
  bool flagOr(std::string_view key, bool fallback);
  std::string_view textOr(std::string_view key, std::string_view fallback);
  /// A key that this engine must not ignore: anything but 0 is Unsupported.
  void refuseUnlessZero(std::string_view key, std::string_view what);

  void fail(ErrorKind kind, std::string_view key, const std::string& message);
  const std::optional<Error>& error() const { return error_; }

private:
  void fail(Error error);
  bool require(std::string_view key);
  uint32_t number(std::string_view key, uint32_t least, uint32_t limit);

  const gguf::File& file_;
  std::string architecture_;
  std::optional<Error> error_;
  std::unordered_set<std::string> seen_;
};

} // namespace mashbox::model
