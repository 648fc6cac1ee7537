#pragma once

#include "cpu/thread_pool.hpp"

#include <cstddef>

namespace mashbox::cpu {

/// Bytes per second at which the pool's threads stream a buffer of `bytes` from memory, the best of several passes; 0 when
/// the buffer cannot be allocated. Take a buffer well above the last-level cache.
double readBandwidth(ThreadPool& pool, size_t bytes);

} // namespace mashbox::cpu
