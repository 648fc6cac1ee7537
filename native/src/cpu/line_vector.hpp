#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace mashbox::cpu {

template <class T> struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t CacheLine{64};

  LineAllocator() = default;
  template <class U> LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), CacheLine)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, CacheLine); }
  template <class U> bool operator==(const LineAllocator<U>&) const { return true; }
};

/// A vector that begins with a cache line.
template <class T> using LineVector = std::vector<T, LineAllocator<T>>;

} // namespace mashbox::cpu
