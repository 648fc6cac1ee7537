#include "model/memory.hpp"

#include "model/forward.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace mashbox::model {
namespace {

constexpr uint64_t MostBlocks = std::numeric_limits<uint32_t>::max();

uint64_t usable(uint64_t available) { return available / 10 * 9; }

std::string readable(uint64_t bytes) {
  char text[32];
  if (bytes >= 1'000'000'000)
    std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  else
    std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

/// The KV cache of one slot as a function of its length in blocks.
struct SlotCache {
  BlockBytes bytes;
  uint64_t mostWindowBlocks; ///< more than these are given back

  uint64_t of(uint64_t blocks) const { return blocks * bytes.whole + std::min(blocks, mostWindowBlocks) * bytes.window; }
  /// The most blocks that fit into `left` bytes.
  uint64_t within(uint64_t left) const {
    const uint64_t ring = of(mostWindowBlocks);
    if (left < ring) return left / (bytes.whole + bytes.window);
    return bytes.whole ? mostWindowBlocks + (left - ring) / bytes.whole : MostBlocks;
  }
};

} // namespace

MemoryPlan planMemory(const Config& config, const ContextOptions& options, uint64_t weights, BlockBytes blockBytes, uint64_t available,
                      uint64_t stateBytes) {
  const uint64_t slots = std::max(1u, options.slots);
  const SlotCache cache{blockBytes, kv::WindowPool::blocksPerSequence(config.window(), options.batchTokens, config.contextLength)};
  const uint64_t logits = config.vocabulary * sizeof(float); // one row per slot
  // Every row of a step once in float32 and once in 8 bits with its scales.
  const uint64_t rows = Forward::valuesPerRow(config) * options.batchTokens * 11 / 2;
  MemoryPlan plan;
  plan.weights = weights;
  plan.available = available;
  plan.scratch = rows + slots * logits;
  plan.states = (slots + options.snapshots) * stateBytes;

  const uint64_t fixed = weights + rows + options.snapshots * stateBytes;
  const uint64_t left = usable(available) > fixed ? usable(available) - fixed : 0;
  const uint64_t perSlot = left / slots > logits + stateBytes ? left / slots - logits - stateBytes : 0;
  const uint64_t blocks = std::min(cache.within(perSlot), MostBlocks / slots);
  plan.largestContext = static_cast<uint32_t>(std::min<uint64_t>(config.contextLength, blocks * kv::BlockTokens));
  plan.contextLength = options.contextLength ? options.contextLength : std::min({config.contextLength, DefaultContext, plan.largestContext});
  const uint64_t blocksPerSlot = std::max<uint64_t>(1, kv::blocksOf(plan.contextLength));
  plan.largestSlots = static_cast<uint32_t>(std::min(left / (cache.of(blocksPerSlot) + logits + stateBytes), MostBlocks / blocksPerSlot));
  plan.kvCache = slots * blocksPerSlot > MostBlocks ? std::numeric_limits<uint64_t>::max() : slots * cache.of(blocksPerSlot);
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
