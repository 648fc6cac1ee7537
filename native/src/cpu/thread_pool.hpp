#pragma once

#include "cpu/cores.hpp"

#include <cstddef>
#include <memory>

namespace mashbox::cpu {

/// A borrowed `void(size_t begin, size_t end, unsigned worker)`: two pointers, no allocation.
class RangeBody {
public:
  template <class Body>
  RangeBody(const Body& body)
      : object_(&body), call_([](const void* object, size_t begin, size_t end, unsigned worker) { (*static_cast<const Body*>(object))(begin, end, worker); }) {}
  void operator()(size_t begin, size_t end, unsigned worker) const { call_(object_, begin, end, worker); }

private:
  const void* object_;
  void (*call_)(const void*, size_t, size_t, unsigned);
};

/// A fixed team of threads; the caller is worker 0. Idle workers sleep on a futex after a bounded spin, so an idle engine
/// burns no CPU. Not re-entrant: one caller at a time.
class ThreadPool {
public:
  /// `threads` counts the caller: 1 (or 0) starts none. Where the system refuses threads the team is smaller.
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  unsigned size() const;

  /// Cuts [0, count) into ranges of at least `grain` (the last may be shorter), runs `body(begin, end, worker)` on the team and
  /// returns when all are done. Every range begins at a multiple of `grain`. Static contiguous ranges first, the tail is stolen.
  /// Which worker runs a range must not change what `body` writes, and `body` must not throw.
  void parallelFor(size_t count, size_t grain, RangeBody body);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace mashbox::cpu
