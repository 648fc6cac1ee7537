#include "sched/frames.hpp"

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <variant>

namespace mashbox::sched {
namespace {

static_assert(std::endian::native == std::endian::little);

enum class Kind : uint8_t { Token = 1, Progress = 2, Done = 3, Failed = 4, ScoredToken = 5, StopToken = 6, Blocks = 8 };

class Writer {
public:
  template <class T>
    requires(std::integral<T> || std::floating_point<T>)
  void put(T value) {
    append(&value, sizeof value);
  }

  void record(Kind kind, uint8_t detail, uint32_t id) {
    put(static_cast<uint8_t>(kind));
    put(detail);
    put(uint16_t{0});
    put(id);
  }

  void text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    append(text.data(), text.size());
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
  }

  /// Fills in the length and hands the frame over.
  std::vector<std::byte> finish() {
    const auto length = static_cast<uint32_t>(bytes_.size() - sizeof(uint32_t));
    std::memcpy(bytes_.data(), &length, sizeof length);
    return std::move(bytes_);
  }

private:
  void append(const void* data, size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  std::vector<std::byte> bytes_;
};

void write(Writer& out, const TokenEvent& event) {
  out.record(Kind::Token, 0, event.id);
  out.put(event.token);
}

void write(Writer& out, const ScoredTokenEvent& event) {
  out.record(Kind::ScoredToken, static_cast<uint8_t>(event.logprobs.top.size()), event.id);
  out.put(event.token);
  out.put(event.logprobs.chosen);
  for (const auto& [logprob, token] : event.logprobs.top) {
    out.put(token);
    out.put(logprob);
  }
}

void write(Writer& out, const StopTokenEvent& event) {
  out.record(Kind::StopToken, 0, event.id);
  out.put(event.token);
}

void write(Writer& out, const ProgressEvent& event) {
  out.record(Kind::Progress, 0, event.id);
  out.put(event.processed);
  out.put(event.total);
}

void write(Writer& out, const DoneEvent& event) {
  out.record(Kind::Done, static_cast<uint8_t>(event.reason), event.id);
  out.put(event.promptTokens);
  out.put(event.cachedTokens);
  out.put(event.generatedTokens);
  out.put(event.queueMs);
  out.put(event.promptMs);
  out.put(event.generationMs);
}

void write(Writer& out, const FailedEvent& event) {
  out.record(Kind::Failed, static_cast<uint8_t>(event.error.kind), event.id);
  out.text(event.error.message);
}

void write(Writer& out, const BlockUse& blocks) {
  out.record(Kind::Blocks, 0, 0);
  for (const uint32_t count : {blocks.used, blocks.total, blocks.windowUsed, blocks.windowTotal}) out.put(count);
}

} // namespace

std::vector<std::byte> encodeFrame(std::span<const Event> events, const std::optional<BlockUse>& blocks) {
  Writer out;
  out.put(uint32_t{0});
  out.put(static_cast<uint32_t>(events.size() + (blocks ? 1 : 0)));
  for (const auto& event : events) std::visit([&](const auto& e) { write(out, e); }, event);
  if (blocks) write(out, *blocks);
  return out.finish();
}

} // namespace mashbox::sched
