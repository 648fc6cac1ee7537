#include "model/delta_net_keys.hpp"

#include "model/rope_keys.hpp"

#include <string>
#include <vector>

namespace mashbox::model {
namespace {

constexpr uint32_t MostHeads = 1 << 14, MostTaps = 16, MostBlocks = 1 << 12;
/// Lengths of heads are whole vectors of every instruction tier.
constexpr uint32_t LengthUnit = 16;

/// One flag per layer of the trunk.
std::vector<bool> recurrentLayers(Keys& keys, const Config& config) {
  constexpr std::string_view list = "attention.recurrent_layers";
  const uint32_t interval = keys.countOr("full_attention_interval", MostBlocks, 4);
  const auto layers = static_cast<uint32_t>(config.layers.size());
  std::vector<bool> out(layers);
  for (uint32_t i = 0; i < layers; ++i) out[i] = (i + 1) % interval != 0;
  if (!keys.has(list)) return out;
  const auto flags = keys.countsPerLayer(list, layers + config.predictionBlocks, 1, 0);
  for (uint32_t i = 0; i < layers; ++i) out[i] = flags[i] != 0;
  return out;
}

void requireUnits(Keys& keys, std::string_view key, uint32_t length, std::string_view what) {
  if (length % LengthUnit != 0)
    keys.fail(ErrorKind::Unsupported, key, std::string(what) + " of " + std::to_string(length) + " values is not a multiple of " + std::to_string(LengthUnit));
}

DeltaNet readDeltaNet(Keys& keys, HeadMap headMap) {
  DeltaNet out;
  out.headMap = headMap;
  out.keyHeads = keys.count("ssm.group_count", MostHeads);
  out.valueHeads = keys.count("ssm.time_step_rank", MostHeads);
  out.keyLength = keys.count("ssm.state_size", MostHeadLength);
  out.convolution = keys.count("ssm.conv_kernel", MostTaps);
  if (out.valueHeads % out.keyHeads != 0)
    keys.fail(ErrorKind::Inconsistent, "ssm.group_count",
              std::to_string(out.keyHeads) + " does not divide the " + std::to_string(out.valueHeads) + " of ssm.time_step_rank");
  const uint32_t inner = keys.count("ssm.inner_size", MostHeads * MostHeadLength);
  out.valueLength = inner / out.valueHeads;
  if (inner % out.valueHeads != 0 || out.valueLength == 0 || out.valueLength > MostHeadLength)
    keys.fail(ErrorKind::Inconsistent, "ssm.inner_size", std::to_string(inner) + " is not " + std::to_string(out.valueHeads) + " heads of at most " +
                                                            std::to_string(MostHeadLength) + " values");
  requireUnits(keys, "ssm.state_size", out.keyLength, "a head");
  requireUnits(keys, "ssm.inner_size", out.valueLength, "a head");
  return out;
}

} // namespace

void mapDeltaNet(Keys& keys, Config& config, HeadMap headMap) {
  const auto recurrent = recurrentLayers(keys, config);
  const DeltaNet deltaNet = readDeltaNet(keys, headMap);
  bool attends = false;
  for (uint32_t i = 0; i < config.layers.size(); ++i) {
    attends = attends || !recurrent[i];
    if (!recurrent[i]) continue;
    config.layers[i].attention.reset();
    config.layers[i].deltaNet = deltaNet;
  }
  if (!attends) keys.fail(ErrorKind::Unsupported, "full_attention_interval", "none of the " + std::to_string(config.layers.size()) + " layers has attention");
}

} // namespace mashbox::model
