#include "model/memory.hpp"

#include "model/forward.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace mashbox::model {
namespace {

uint64_t usable(uint64_t available) { return available / 10 * 9; }

std::string readable(uint64_t bytes) {
  char text[32];
  if (bytes >= 1'000'000'000)
    std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  else
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

} // namespace

uint64_t blocksFor(uint64_t tokens) { return (tokens + kv::BlockTokens - 1) / kv::BlockTokens; }

MemoryPlan planMemory(const Config& config, const ContextOptions& options, uint64_t weights, uint64_t blockBytes, uint64_t available,
                      uint64_t stateBytes) {
  constexpr uint64_t MostBlocks = std::numeric_limits<uint32_t>::max();
  const uint64_t slots = std::max(1u, options.slots);
  MemoryPlan plan;
  plan.weights = weights;
  plan.available = available;
  // Every row once in float32 and once in 8 bits with its scales; one row of logits per slot.
  plan.scratch = Forward::valuesPerRow(config) * options.batchTokens * 11 / 2 + slots * config.vocabulary * sizeof(float);

  const uint64_t fixed = plan.weights + plan.scratch + options.snapshots * stateBytes;
  const uint64_t left = usable(available) > fixed ? usable(available) - fixed : 0;
  const uint64_t stateless = left > slots * stateBytes ? left - slots * stateBytes : 0;
  const uint64_t blocksLeft = std::min(stateless / blockBytes, MostBlocks);
  plan.states = (slots + options.snapshots) * stateBytes;
  plan.largestContext = static_cast<uint32_t>(std::min<uint64_t>(config.contextLength, blocksLeft / slots * kv::BlockTokens));
  plan.contextLength = options.contextLength ? options.contextLength : std::min({config.contextLength, DefaultContext, plan.largestContext});
  const uint64_t blocksPerSlot = std::max<uint64_t>(1, blocksFor(plan.contextLength));
  plan.largestSlots = static_cast<uint32_t>(std::min(left / (blocksPerSlot * blockBytes + stateBytes), MostBlocks / blocksPerSlot));
  plan.kvCache = slots * blocksPerSlot > MostBlocks ? std::numeric_limits<uint64_t>::max() : slots * blocksPerSlot * blockBytes;
  return plan;
}

bool fits(const MemoryPlan& plan) {
  const uint64_t fixed = plan.weights + plan.scratch + plan.states, most = usable(plan.available);
  return plan.contextLength > 0 && fixed <= most && plan.kvCache <= most - fixed;
}

Error doesNotFit(const MemoryPlan& plan, const ContextOptions& options) {
  const std::string slots = std::to_string(options.slots) + (options.slots == 1 ? " slot" : " slots");
  std::string message = "ctx: not enough memory: " + readable(plan.weights) + " of weights, " + readable(plan.scratch) + " of scratch" +
                        (plan.states ? ", " + readable(plan.states) + " of recurrent states" : "") + " and ";
  message += plan.contextLength ? readable(plan.kvCache) + " of KV cache (" + slots + " of ctx " + std::to_string(plan.contextLength) + ")" : "a KV cache";
  message += " against " + readable(plan.available) + " available, of which a tenth is left free; ";
  if (plan.largestContext == 0) {
    message += "no context fits with " + slots;
  } else {
    message += "the largest ctx with " + slots + " is " + std::to_string(plan.largestContext);
  }
  if (plan.contextLength) message += ", the most slots with ctx " + std::to_string(plan.contextLength) + " is " + std::to_string(plan.largestSlots);
  return Error{ErrorKind::OutOfMemory, message, "ctx"};
}

} // namespace mashbox::model
