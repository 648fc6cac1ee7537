#include "cpu/bandwidth.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace mashbox::cpu {
namespace {

constexpr size_t Line = 64;
constexpr size_t Chunk = size_t{256} << 10;

/// Reads [begin, end) as four streams, a cache line of each in turn.
uint64_t stream(const std::byte* begin, const std::byte* end) {
  constexpr size_t Streams = 4;
  const size_t length = size_t(end - begin) / Streams / Line * Line;
  uint64_t sums[8] = {};
  for (size_t at = 0; at < length; at += Line)
    for (size_t s = 0; s < Streams; ++s) {
      const std::byte* line = begin + s * length + at;
      __builtin_prefetch(line + 1024);
      uint64_t words[8];
      std::memcpy(words, line, sizeof words);
      for (size_t i = 0; i < 8; ++i) sums[i] += words[i];
    }
  uint64_t sum = 0;
  for (const uint64_t value : sums) sum += value;
  return sum;
}

} // namespace

double readBandwidth(ThreadPool& pool, size_t bytes) {
  const size_t chunks = std::max<size_t>(bytes / Chunk, 1);
  void* memory = mmap(nullptr, chunks * Chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
#if defined(MADV_HUGEPAGE)
  madvise(memory, chunks * Chunk, MADV_HUGEPAGE);
#endif
  auto* buffer = static_cast<std::byte*>(memory);
  pool.parallelFor(chunks, 1, [&](size_t begin, size_t end, unsigned) { std::memset(buffer + begin * Chunk, 1, (end - begin) * Chunk); });

  // The sums are kept so that the reads are.
  std::atomic<uint64_t> sum{0};
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallelFor(chunks, 1, [&](size_t begin, size_t end, unsigned) { sum += stream(buffer + begin * Chunk, buffer + end * Chunk); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, double(chunks * Chunk) / seconds.count());
  }
  munmap(memory, chunks * Chunk);
  return sum == 0 ? 0 : best;
}

} // namespace mashbox::cpu
