#pragma once

#include "model/config.hpp"
#include "model/keys.hpp"

namespace mashbox::model {

/// Reads which layers are recurrent (`attention.recurrent_layers`, else every layer but each `full_attention_interval`-th) and the sizes
/// of their delta net (`ssm.*`), and gives these layers a delta net in place of their attention.
void mapDeltaNet(Keys& keys, Config& config, HeadMap headMap);

} // namespace mashbox::model
