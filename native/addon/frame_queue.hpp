#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

namespace mashbox::addon {

/// Frames on their way from the scheduler's thread to the JavaScript thread. Bounded: a producer that is too far ahead waits.
class FrameQueue {
public:
  /// Waits while the queue is full; drops the frame once the queue is closed.
  void push(std::vector<std::byte> frame) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return bytes_ < MostBytes || closed_; });
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
  static constexpr size_t MostBytes = 1 << 20;

  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<std::vector<std::byte>> frames_;
  size_t bytes_ = 0;
  bool closed_ = false;
};

} // namespace mashbox::addon
