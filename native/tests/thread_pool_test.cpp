#include "test.hpp"

#include "cpu/bandwidth.hpp"
#include "cpu/thread_pool.hpp"

#include <atomic>
#include <fstream>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace mashbox;
using cpu::ThreadPool;
using test::check;
using test::Test;

namespace {

void expectOnce(ThreadPool& pool, size_t count, size_t grain) {
  std::vector<unsigned> seen(count);
  std::atomic<bool> good{true};
  pool.parallelFor(count, grain, [&](size_t begin, size_t end, unsigned worker) {
    if (begin >= end || end > count || worker >= pool.size() || (grain > 0 && begin % grain != 0)) good = false;
    for (size_t i = begin; i < end; ++i) ++seen[i];
  });
  const std::string what = std::to_string(pool.size()) + " threads, count " + std::to_string(count) + ", grain " + std::to_string(grain);
  check(good, "ranges are within bounds and begin at grains: " + what);
  for (const unsigned times : seen) check(times == 1, "every index exactly once: " + what);
}

const Test coverage{"thread pool: every index runs exactly once", test::threaded, [] {
  for (const unsigned threads : {0, 1, 2, 3, 8}) {
    ThreadPool pool(threads);
    check(pool.size() == std::max(threads, 1u));
    for (const size_t count : {0, 1, 2, 3, 7, 16, 100, 1000, 4099})
      for (const size_t grain : {0, 1, 3, 16, 5000}) expectOnce(pool, count, grain);
  }
}};

const Test manyRegions{"thread pool: many small regions see each other's writes", test::threaded, [] {
  ThreadPool pool(4);
  std::vector<uint64_t> values(64);
  for (uint64_t round = 0; round < 20000; ++round)
    pool.parallelFor(values.size(), 1, [&](size_t begin, size_t end, unsigned) {
      // The value on the other side was written in the last region, mostly by another worker.
      for (size_t i = begin; i < end; ++i) values[i] = round % 2 ? values[i] + 1 : values[i] + 2;
    });
  for (const uint64_t value : values) check(value == 30000);
}};

const Test generations{"thread pool: a worker's view survives more regions than its generation counter holds", test::threaded, [] {
  ThreadPool pool(2);
  std::atomic<uint64_t> sum{0};
  for (int i = 0; i < 70000; ++i) pool.parallelFor(2, 1, [&](size_t begin, size_t end, unsigned) { sum += end - begin; });
  check(sum == 140000);
}};

const Test workers{"thread pool: all workers take part when there is work for them", test::threaded, [] {
  ThreadPool pool(3);
  std::atomic<unsigned> inside{0};
  // Each range waits until every worker holds one.
  pool.parallelFor(3, 1, [&](size_t begin, size_t end, unsigned) {
    for (size_t i = begin; i < end; ++i) {
      ++inside;
      while (inside < 3) std::this_thread::yield();
    }
  });
  check(inside == 3);
}};

const Test concurrent{"thread pool: several pools run side by side", test::threaded, [] {
  std::vector<std::thread> callers;
  std::atomic<uint64_t> sum{0};
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      ThreadPool pool(3);
      for (int i = 0; i < 500; ++i)
        pool.parallelFor(100, 7, [&](size_t begin, size_t end, unsigned) {
          for (size_t k = begin; k < end; ++k) sum += k;
        });
    });
  for (std::thread& caller : callers) caller.join();
  check(sum == 3ull * 500 * 4950);
}};

const Test destruction{"thread pool: idle and unused pools end", test::threaded, [] {
  for (int i = 0; i < 50; ++i) {
    ThreadPool unused(3);
    ThreadPool used(3);
    used.parallelFor(10, 1, [](size_t, size_t, unsigned) {});
  }
}};

const Test cores{"cores: at least one, at most what the machine has", [] {
  check(cpu::availableCores() >= 1);
  check(cpu::availableCores() <= std::max(1u, std::thread::hardware_concurrency()));
}};

const Test quota{"cores: the tightest cgroup quota counts, of both versions", [] {
  const std::filesystem::path root = std::filesystem::temp_directory_path() / ("mashbox-cgroup-" + std::to_string(getpid()));
  const auto write = [&](const std::filesystem::path& file, const char* text) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  write("a/b/cpu.max", "max 100000\n");
  write("a/cpu.max", "150000 100000\n");
  write("c/cpu.max", "garbage\n");
  write("cpu/d/cpu.cfs_quota_us", "-1\n");
  write("cpu/d/cpu.cfs_period_us", "100000\n");
  write("cpu/cpu.cfs_quota_us", "250000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  const auto at = [&](const char* membership) { return cpu::cgroupQuota(root, membership); };
  check(at("0::/a/b\n") == 1.5, "a parent's quota holds");
  check(!at("0::/c\n") && !at("0::/nowhere\n") && !at("") && !at("nonsense"), "nothing limits");
  check(at("4:memory:/d\n3:cpuacct,cpu:/d\n") == 2.5, "version 1");
  check(!at("3:cpuset:/d\n"), "another controller");
  check(!at("0::/../../etc\n"), "a path outside");
  std::filesystem::remove_all(root);
}};

const Test bandwidth{"bandwidth: a small buffer is read at a plausible rate", test::threaded, [] {
  ThreadPool pool(2);
  const double rate = cpu::readBandwidth(pool, size_t{4} << 20);
  check(rate > 1e8 && rate < 1e13, std::to_string(rate));
}};

} // namespace
