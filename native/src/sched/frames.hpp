#pragma once

#include "sched/event.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mashbox::sched {

/// The events of one step as one binary frame (layout: native/FRAMES.md).
std::vector<std::byte> encodeFrame(std::span<const Event> events);

} // namespace mashbox::sched
