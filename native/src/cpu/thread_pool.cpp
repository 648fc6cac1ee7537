#include "cpu/thread_pool.hpp"

#include "cpu/cores.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace mashbox::cpu {
namespace {

using Clock = std::chrono::steady_clock;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins until `done()` or for `limit`; says whether it is done.
template <class Done> bool spin(Clock::duration limit, const Done& done) {
  if (done()) return true;
  if (limit == Clock::duration::zero()) return false;
  const auto end = Clock::now() + limit;
  do
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      relax();
    }
  while (Clock::now() < end);
  return done();
}

/// A worker's share of the region, in grains. Its owner and thieves take pieces off the front.
struct alignas(64) Share {
  std::atomic<size_t> next{0};
  size_t end = 0, piece = 1;
};

} // namespace

/// Workers join the open region if they come in time; the caller closes it once no work is left, and waits for those who joined
/// only. So a worker that the system does not run never delays a region.
struct ThreadPool::Impl {
  /// `state`: generation << 16 | open << 15 | workers inside. A worker that misses generations, even all 65536 of them, misses nothing
  /// that it must do.
  static constexpr uint32_t Open = 1u << 15, Inside = Open - 1, Generation = 1u << 16;
  static constexpr uint32_t Stop = Inside; ///< closed, with more workers than there can be
  static bool stopped(uint32_t state) { return (state & (Open | Inside)) == Stop; }

  alignas(64) std::atomic<uint32_t> state{0};
  alignas(64) std::vector<Share> shares;
  RangeBody* body = nullptr;
  size_t count = 0, grain = 1;
  Clock::duration spinLimit;
  std::vector<std::thread> threads;

  void work(unsigned worker) {
    const size_t team = shares.size();
    for (size_t i = 0; i < team; ++i) {
      Share& share = shares[(worker + i) % team];
      for (;;) {
        if (share.next.load(std::memory_order_relaxed) >= share.end) break;
        const size_t first = share.next.fetch_add(share.piece, std::memory_order_relaxed);
        if (first >= share.end) break;
        const size_t last = std::min(first + share.piece, share.end);
        (*body)(first * grain, std::min(last * grain, count), worker);
      }
    }
  }

  void run(unsigned worker) {
    uint32_t seen = 0;
    for (;;) {
      uint32_t now = seen;
      const auto changed = [&] {
        now = state.load(std::memory_order_acquire);
        return now / Generation != seen / Generation || stopped(now);
      };
      while (!spin(spinLimit, changed)) state.wait(now, std::memory_order_acquire);
      if (stopped(now)) return;
      seen = now;
      while ((now & Open) && now / Generation == seen / Generation)
        if (state.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
          work(worker);
          const uint32_t left = state.fetch_sub(1, std::memory_order_acq_rel) - 1;
          if ((left & (Open | Inside)) == 0) state.notify_all();
          break;
        }
    }
  }
};

ThreadPool::ThreadPool(unsigned threads) : impl_(std::make_unique<Impl>()) {
  const unsigned team = std::clamp(threads, 1u, 1024u);
  impl_->spinLimit = team <= availableCores() ? std::chrono::microseconds(40) : std::chrono::microseconds(0);
  impl_->shares = std::vector<Share>(team);
  impl_->threads.reserve(team - 1);
  try {
    for (unsigned worker = 1; worker < team; ++worker) impl_->threads.emplace_back([impl = impl_.get(), worker] { impl->run(worker); });
  } catch (const std::system_error&) {
    // Shares without a thread are stolen by the others.
  }
}

ThreadPool::~ThreadPool() {
  const uint32_t generation = impl_->state.load(std::memory_order_relaxed) / Impl::Generation + 1;
  impl_->state.store(generation * Impl::Generation | Impl::Stop, std::memory_order_release);
  impl_->state.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

unsigned ThreadPool::size() const { return unsigned(impl_->threads.size()) + 1; }

void ThreadPool::parallelFor(size_t count, size_t grain, RangeBody body) {
  if (count == 0) return;
  grain = std::max<size_t>(grain, 1);
  const size_t grains = count / grain + (count % grain != 0);
  if (grains == 1 || impl_->threads.empty()) return body(0, count, 0);

  Impl& pool = *impl_;
  pool.body = &body;
  pool.count = count;
  pool.grain = grain;
  const size_t team = pool.shares.size();
  size_t begin = 0;
  for (size_t i = 0; i < team; ++i) {
    Share& share = pool.shares[i];
    const size_t length = grains / team + (i < grains % team);
    share.next.store(begin, std::memory_order_relaxed);
    share.end = begin += length;
    share.piece = std::max<size_t>(length / 8, 1);
  }
  const uint32_t generation = pool.state.load(std::memory_order_relaxed) / Impl::Generation + 1;
  pool.state.store(generation * Impl::Generation | Impl::Open, std::memory_order_release);
  pool.state.notify_all();
  pool.work(0);

  uint32_t now = pool.state.fetch_and(~Impl::Open, std::memory_order_acq_rel) & ~Impl::Open;
  const auto empty = [&] {
    now = pool.state.load(std::memory_order_acquire);
    return (now & Impl::Inside) == 0;
  };
  while (!spin(pool.spinLimit, empty)) pool.state.wait(now, std::memory_order_acquire);
}

} // namespace mashbox::cpu
