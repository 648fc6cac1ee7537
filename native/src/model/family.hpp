#pragma once

#include "model/config.hpp"
#include "model/families.hpp"
#include "model/keys.hpp"

#include <string_view>

namespace mashbox::model {

/// One model family: the architecture's name in GGUF and the mapping of its keys to flags.
struct Family {
  std::string_view architecture;
  void (*map)(Keys& keys, Config& config);
};

/// Null for an architecture that this engine does not know.
const Family* findFamily(std::string_view architecture);
/// Every supported architecture, for messages: "llama, qwen2, …".
std::string familyNames();

/// The keys that every transformer has: sizes, heads, epsilon, context, rope base and scaling. All layers get full attention, one
/// rope and a dense feed-forward; the family's mapping changes what differs. Later reads are pointless where `keys.error()` is set.
void mapTransformer(Keys& keys, Config& config, RopePairing pairing);

#define MASHBOX_DECLARE_MAPPING(architecture, mapping) void mapping(Keys& keys, Config& config);
MASHBOX_FAMILIES(MASHBOX_DECLARE_MAPPING)
#undef MASHBOX_DECLARE_MAPPING

} // namespace mashbox::model
