#include "sched/frame_queue.hpp"
#include "sched/frames.hpp"
#include "test.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace mashbox;
using namespace mashbox::sched;
using mashbox::test::check;
using mashbox::test::Test;

void expect(const std::vector<Event>& events, const std::string& hex) {
  std::string actual;
  for (const std::byte byte : encodeFrame(events)) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    actual += digits;
  }
  std::string expected;
  for (const char c : hex)
    if (c != ' ') expected += c;
  check(actual == expected, actual);
}

const Test tokenFrame{"frames: token", [] {
  expect({TokenEvent{0x01020304, 151643}}, "10000000 01000000 01000000 04030201 5b500200");
  expect({TokenEvent{0xffffffff, -1}}, "10000000 01000000 01000000 ffffffff ffffffff");
}};

const Test scoredTokenFrame{"frames: a token with log probabilities, and the stop token", [] {
  expect({ScoredTokenEvent{7, 5, {-0.5f, {}}}}, "14000000 01000000 05000000 07000000 05000000 000000bf");
  expect({ScoredTokenEvent{7, 5, {-0.5f, {{-0.5f, 5}, {-2.0f, 9}}}}},
    "24000000 01000000 05020000 07000000 05000000 000000bf 05000000 000000bf 09000000 000000c0");
  expect({StopTokenEvent{7, 2}}, "10000000 01000000 06000000 07000000 02000000");
}};

const Test blocksRecord{"frames: the blocks in use come behind the events of a step", [] {
  std::string actual;
  const BlockUse blocks{.used = 5, .total = 64, .windowUsed = 3, .windowTotal = 300};
  for (const std::byte byte : encodeFrame(std::vector<Event>{TokenEvent{7, 5}}, blocks)) actual += static_cast<char>(byte);
  const std::string token("\x01\0\0\0\x07\0\0\0\x05\0\0\0", 12), record("\x08\0\0\0\0\0\0\0\x05\0\0\0\x40\0\0\0\x03\0\0\0\x2c\x01\0\0", 24);
  check(actual == std::string("\x28\0\0\0\x02\0\0\0", 8) + token + record);
}};

const Test progressFrame{"frames: progress", [] { expect({ProgressEvent{7, 256, 1000}}, "14000000 01000000 02000000 07000000 00010000 e8030000"); }};

const Test doneFrame{"frames: done, each reason", [] {
  const auto frame = [](FinishReason reason) -> std::vector<Event> { return {DoneEvent{9, reason, 5, 2, 3, 0.5, 1, -2}}; };
  const std::string payload = "09000000 05000000 02000000 03000000 000000000000e03f 000000000000f03f 00000000000000c0";
  expect(frame(FinishReason::Stop), "30000000 01000000 03000000" + payload);
  expect(frame(FinishReason::Length), "30000000 01000000 03010000" + payload);
  expect(frame(FinishReason::Cancelled), "30000000 01000000 03020000" + payload);
}};

const Test failedFrame{"frames: failed, with every padding", [] {
  expect({FailedEvent{1, {ErrorKind::NotFound, "", ""}}}, "10000000 01000000 04000000 01000000 00000000");
  expect({FailedEvent{1, {ErrorKind::OutOfMemory, "a", "kv"}}}, "14000000 01000000 04050000 01000000 01000000 61000000");
  expect({FailedEvent{1, {ErrorKind::Rejected, "ab", ""}}}, "14000000 01000000 04060000 01000000 02000000 61620000");
  expect({FailedEvent{1, {ErrorKind::Invalid, "abc", ""}}}, "14000000 01000000 04020000 01000000 03000000 61626300");
  expect({FailedEvent{1, {ErrorKind::Invalid, "abcd", ""}}}, "14000000 01000000 04020000 01000000 04000000 61626364");
}};

const Test severalRecords{"frames: records follow each other; an empty step is an empty frame", [] {
  expect({}, "04000000 00000000");
  expect({TokenEvent{1, 2}, ProgressEvent{3, 4, 5}}, "20000000 02000000 01000000 01000000 02000000 02000000 03000000 04000000 05000000");
}};

const Test queueBound{"frames: a writer waits for room, keeps its order and loses nothing", test::threaded, [] {
  constexpr int Frames = 2000;
  FrameQueue queue(64);
  std::thread writer([&] {
    for (int i = 0; i < Frames; ++i) queue.push(std::vector<std::byte>(1 + i % 16, static_cast<std::byte>(i)));
  });
  size_t longest = 0;
  bool ordered = true;
  for (int i = 0; i < Frames;) {
    longest = std::max(longest, queue.size());
    if (const auto frame = queue.pop()) ordered = ordered && frame->front() == static_cast<std::byte>(i++);
  }
  writer.join();
  check(ordered && !queue.pop());
  check(longest <= 64);
}};

const Test queueClose{"frames: closing the queue lets a waiting writer go", test::threaded, [] {
  FrameQueue queue(1);
  std::thread writer([&] {
    for (int i = 0; i < 3; ++i) queue.push(std::vector<std::byte>(8));
  });
  while (queue.size() == 0) std::this_thread::yield();
  queue.close();
  writer.join();
  check(queue.size() == 1, "what came after closing is dropped");
}};

} // namespace
