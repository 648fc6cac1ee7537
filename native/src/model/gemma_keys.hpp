#pragma once

#include "model/config.hpp"
#include "model/keys.hpp"

namespace mashbox::model {

/// What all Gemmas share: halves that turn, a scaled embedding, norms on both sides of every sum, GeGLU, soft-capped logits.
void mapGemma(Keys& keys, Config& config);

} // namespace mashbox::model
