#include "model/rope_keys.hpp"

#include "base/text.hpp"

#include <limits>
#include <string>

namespace mashbox::model {
namespace {

void readYarn(Keys& keys, const Config& config, Rope& rope) {
  rope.scaling = RopeScaling::Yarn;
  rope.originalContext = keys.countOr("rope.scaling.original_context_length", std::numeric_limits<uint32_t>::max(), config.contextLength);
  rope.betaFast = keys.positiveOr("rope.scaling.yarn_beta_fast", 32);
  rope.betaSlow = keys.positiveOr("rope.scaling.yarn_beta_slow", 1);
  rope.attentionFactor = keys.positiveOr("rope.scaling.attn_factor", 1);
  if (keys.has("rope.scaling.yarn_ext_factor") && keys.positive("rope.scaling.yarn_ext_factor") != 1)
    keys.fail(ErrorKind::Unsupported, "rope.scaling.yarn_ext_factor", "only 1 is supported");
}

} // namespace

uint32_t readDims(Keys& keys, std::string_view key, uint32_t keyLength) {
  const uint32_t dims = keys.countOr(key, MostHeadLength, keyLength);
  if (keys.has(key) && (dims > keyLength || dims % 2 != 0))
    keys.fail(ErrorKind::Invalid, key, std::to_string(dims) + " is not an even number of at most " + std::to_string(keyLength));
  return dims;
}

Rope readRope(Keys& keys, const Config& config, RopePairing pairing) {
  Rope rope;
  rope.pairing = pairing;
  rope.base = keys.positiveOr("rope.freq_base", 10000);
  rope.dims = readDims(keys, "rope.dimension_count", config.layers[0].attention->keyLength);
  const bool old = keys.has("rope.scale_linear");
  const std::string_view factorKey = old ? "rope.scale_linear" : "rope.scaling.factor";
  const std::string_view type = keys.textOr("rope.scaling.type", keys.has(factorKey) ? "linear" : "none");
  if (type == "none") return rope;
  rope.factor = keys.positive(factorKey);
  if (type == "linear")
    rope.scaling = RopeScaling::Linear;
  else if (type == "yarn")
    readYarn(keys, config, rope);
  else
    keys.fail(ErrorKind::Unsupported, "rope.scaling.type", "\"" + escaped(type) + "\" is not supported");
  return rope;
}

Rope readSlidingRope(Keys& keys, uint32_t keyLength, double base, RopePairing pairing) {
  Rope rope;
  rope.pairing = pairing;
  rope.base = keys.positiveOr("rope.freq_base_swa", base);
  rope.dims = readDims(keys, "rope.dimension_count_swa", keyLength);
  rope.factors = false;
  return rope;
}

} // namespace mashbox::model
