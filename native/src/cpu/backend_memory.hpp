#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace mashbox::cpu {

/// Anonymous memory, page aligned and zero. The system commits a page when it is first written, so a region costs what was used of it.
class Region {
public:
  Region() = default;
  /// OutOfMemory when the system refuses; `what` goes into the message.
  static Result<Region> reserve(uint64_t bytes, const std::string& what);
  Region(Region&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Region& operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Region();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data_); }

private:
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

/// Bytes that this process can take now: MemAvailable, lowered to what its cgroups leave. Page cache counts as available.
uint64_t availableMemory();

} // namespace mashbox::cpu
