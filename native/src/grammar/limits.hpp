#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <time.h>

namespace mashbox::grammar {

/// What one grammar may cost. What exceeds it ends with the error kind TooComplex.
struct Limits {
  size_t irBytes = 4 << 20;
  size_t terms = 400'000;      ///< of the lazily built automaton, at any time
  size_t rowEntries = 8 << 20; ///< of its transition tables
  size_t walkEntries = 4 << 20; ///< transitions remembered for the walks that make masks; they are dropped at half of it
  size_t threads = 512;        ///< ways to read one output that are followed at once
  uint32_t depth = 500;        ///< nested repeats, choices and sequences
  size_t maskBytes = 16 << 20; ///< cached masks; the oldest are dropped
  std::chrono::milliseconds compileTime{250}; ///< of its thread
  std::chrono::milliseconds maskTime{100};    ///< for one mask or token
};

/// Notices when a limit is exceeded; from then on the work that it guards gives results that nobody may use.
class Budget {
public:
  /// From now on this thread may work as long as `time`.
  void start(std::chrono::nanoseconds time) { deadline_ = threadTime() + time; }
  void exceed(std::string what) {
    if (what_.empty()) what_ = std::move(what);
  }
  /// Counts one unit of work and looks at the clock now and then.
  void tick() {
    if ((++ticks_ & 1023) == 0 && threadTime() > deadline_) exceed("it takes too long");
  }
  bool exceeded() const { return !what_.empty(); }
  const std::string& what() const { return what_; }

private:
  static std::chrono::nanoseconds threadTime() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  std::chrono::nanoseconds deadline_{};
  uint32_t ticks_ = 0;
  std::string what_;
};

} // namespace mashbox::grammar
