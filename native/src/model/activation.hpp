#pragma once

namespace mashbox::model {

/// What the gate of a feed-forward becomes before it multiplies the up projection.
enum class Activation {
  Silu,
  Gelu,  ///< the tanh form
  Swiglu ///< gpt-oss: min(g, 7) · sigmoid(1.702 min(g, 7)) · (clamp(u, −7, 7) + 1)
};

} // namespace mashbox::model
