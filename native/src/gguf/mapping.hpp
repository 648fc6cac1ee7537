#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace mashbox::gguf {

/// A whole regular file mapped read-only; unmapped with the object.
class Mapping {
public:
  /// NotFound for what is absent, unreadable or no regular file; OutOfMemory where the system refuses the mapping.
  static Result<Mapping> open(const std::string& path);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::span<const std::byte> bytes() const { return bytes_; }

private:
  explicit Mapping(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_; ///< empty for an empty file, which is not mapped
};

} // namespace mashbox::gguf
