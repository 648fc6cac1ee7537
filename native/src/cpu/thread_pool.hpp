#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace mashbox::cpu {

/// A fixed team of threads; the caller is worker 0. Idle workers sleep on a futex after a bounded spin, so an idle engine
/// burns no CPU. Not re-entrant: one caller at a time.
class ThreadPool {
public:
  explicit ThreadPool(unsigned threads);
  ~ThreadPool();
  unsigned size() const;

  /// Cuts [0, count) into ranges of at least `grain`, runs `body(begin, end, worker)` on the team and returns when all are done.
  /// Static contiguous ranges first, the tail is stolen. Which worker runs a range must not change what `body` writes.
  void parallelFor(size_t count, size_t grain, const std::function<void(size_t begin, size_t end, unsigned worker)>& body);

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Cores this process may use: affinity, then the cgroup's cpu.max.
unsigned availableCores();

} // namespace mashbox::cpu
