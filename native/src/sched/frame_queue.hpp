#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace mashbox::sched {

/// Frames on their way from the scheduler's thread to a reader. Bounded: a scheduler that is too far ahead waits, so a reader that
/// stalls costs time and no memory.
class FrameQueue {
public:
  explicit FrameQueue(size_t mostBytes = 1 << 20) : mostBytes_(mostBytes) {}

  /// Waits while the queue holds `mostBytes` or more; drops the frame once the queue is closed.
  void push(std::vector<std::byte> frame) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return bytes_ < mostBytes_ || closed_; });
    if (closed_) return;
    bytes_ += frame.size();
    frames_.push_back(std::move(frame));
  }

  std::optional<std::vector<std::byte>> pop() {
    const std::lock_guard lock(mutex_);
    if (frames_.empty()) return std::nullopt;
    std::vector<std::byte> frame = std::move(frames_.front());
    frames_.pop_front();
    bytes_ -= frame.size();
    room_.notify_one();
    return frame;
  }

  /// Lets a waiting writer go.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    room_.notify_all();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return frames_.size();
  }

private:
  const size_t mostBytes_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<std::vector<std::byte>> frames_;
  size_t bytes_ = 0;
  bool closed_ = false;
};

} // namespace mashbox::sched
