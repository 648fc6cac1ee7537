#pragma once

#include "kv/block_counts.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::kv {

/// The blocks of a model's sliding-window layers. A token at position i sees positions j with i − j < window.
struct WindowPool : BlockCounts {
  WindowPool(uint32_t blocks, uint32_t window) : BlockCounts(blocks), window(window) {}
  uint32_t window;

  /// Blocks of one sequence that runs at most `batchTokens` rows in a step of a context of `contextLength` tokens.
  static uint32_t blocksPerSequence(uint32_t window, uint32_t batchTokens, uint32_t contextLength);
};

/// One sequence's blocks of the sliding-window layers: a table whose front is given back as the window moves on, when room is made
/// for the next tokens. Until then the sequence can still go back to where it was before its last step.
class WindowBlocks {
public:
  explicit WindowBlocks(WindowPool& pool) : pool_(&pool) {}
  WindowBlocks(WindowBlocks&& other) noexcept;
  WindowBlocks& operator=(WindowBlocks&& other) noexcept;
  ~WindowBlocks();

  /// `blocks()[i]` holds positions from (first() + i) · BlockTokens on.
  uint32_t first() const { return first_; }
  std::span<const BlockId> blocks() const { return blocks_; }
  /// Whether everything is there that a token at position `length` sees.
  bool reaches(uint32_t length) const;

  /// Gives back what no token from `length` on sees, then takes room for `tokens` more. OutOfMemory: takes nothing.
  Result<void> reserve(uint32_t length, uint32_t tokens);
  /// The most tokens that `reserve` could make room for.
  uint64_t room(uint32_t length) const;
  void truncate(uint32_t length);
  /// Shares the whole blocks before `length`, a multiple of BlockTokens that is reached: all that this sequence still has.
  WindowBlocks fork(uint32_t length) const;

private:
  /// The first block that a token at position `length` sees.
  uint32_t firstSeen(uint32_t length) const;
  void clear();

  WindowPool* pool_;
  std::vector<BlockId> blocks_;
  uint32_t first_ = 0;
};

} // namespace mashbox::kv
