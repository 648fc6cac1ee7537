#pragma once

#include "sample/sampler.hpp"

#include <cstdint>
#include <vector>

namespace mashbox::sched {

struct Request {
  uint32_t id;
  std::vector<int32_t> tokens;     ///< the prompt, at least one token
  uint32_t maxTokens;              ///< at least 1
  sample::Sampling sampling;
  std::vector<int32_t> stopTokens; ///< end the output; not reported as tokens
};

} // namespace mashbox::sched
