#pragma once

#include "base/result.hpp"
#include "sample/logprobs.hpp"

#include <cstdint>
#include <variant>

namespace mashbox::sched {

enum class FinishReason : uint8_t { Stop = 0, Length = 1, Cancelled = 2 };

struct TokenEvent {
  uint32_t id;
  int32_t token;
};

/// In place of a `TokenEvent`, for requests that ask for log probabilities.
struct ScoredTokenEvent {
  uint32_t id;
  int32_t token;
  sample::Logprobs logprobs;
};

/// The stop token that ended the output; the `DoneEvent` follows.
struct StopTokenEvent {
  uint32_t id;
  int32_t token;
};

/// Prompt tokens that were run, after every prefill chunk.
struct ProgressEvent {
  uint32_t id;
  uint32_t processed, total;
};

struct DoneEvent {
  uint32_t id;
  FinishReason reason;
  uint32_t promptTokens, cachedTokens;
  uint32_t generatedTokens; ///< reported tokens: a stop token does not count
  double queueMs;           ///< from submission to a slot
  double promptMs;          ///< from the slot to the first drawn token
  double generationMs;      ///< from then to the end
};

struct FailedEvent {
  uint32_t id;
  Error error;
};

/// KV blocks that sequences hold, and all there are.
struct BlockUse {
  uint32_t used = 0, total = 0;             ///< of the layers that see the whole sequence
  uint32_t windowUsed = 0, windowTotal = 0; ///< of sliding-window layers; 0 without any

  uint32_t free() const { return total - used; }
  uint32_t windowFree() const { return windowTotal - windowUsed; }
};

/// What happened to a request in one step. `DoneEvent` and `FailedEvent` are its last.
using Event = std::variant<TokenEvent, ScoredTokenEvent, StopTokenEvent, ProgressEvent, DoneEvent, FailedEvent>;

} // namespace mashbox::sched
