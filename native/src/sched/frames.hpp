#pragma once

#include "sched/event.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace mashbox::sched {

/// The events of one step, and behind them the blocks in use where they are given, as one binary frame (layout: native/FRAMES.md).
std::vector<std::byte> encodeFrame(std::span<const Event> events, const std::optional<BlockUse>& blocks = std::nullopt);

} // namespace mashbox::sched
