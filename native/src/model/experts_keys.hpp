#pragma once

#include "model/config.hpp"
#include "model/keys.hpp"

namespace mashbox::model {

/// Reads the keys of a mixture of experts and gives every layer from `leading_dense_block_count` on its experts, in place of its dense
/// feed-forward. `family` says what holds where the file has no key: gating, normalising, activation, and whether a selection bias or a
/// gate of the shared expert must be there.
void mapExperts(Keys& keys, Config& config, const Experts& family);

/// The same where the file has experts at all: `expert_count` above 0.
void mapOptionalExperts(Keys& keys, Config& config, const Experts& family);

} // namespace mashbox::model
