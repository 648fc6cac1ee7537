#include "model/window_keys.hpp"

#include "model/rope_keys.hpp"

#include <algorithm>

namespace mashbox::model {
namespace {

constexpr std::string_view Pattern = "attention.sliding_window_pattern";

bool isArray(const Keys& keys, std::string_view key) {
  const gguf::Value* value = keys.file().find(keys.name(key));
  return value && std::holds_alternative<gguf::Array>(*value);
}

} // namespace

std::vector<bool> mapWindows(Keys& keys, Config& config, const std::function<bool(uint32_t layer)>& sliding, uint32_t fallback) {
  const auto layers = static_cast<uint32_t>(config.layers.size());
  std::vector<bool> slides(layers, false);
  constexpr std::string_view Window = "attention.sliding_window";
  const uint32_t window = keys.has(Window) ? keys.countOrZero(Window, UINT32_MAX) : fallback;
  const bool pattern = keys.has(Pattern);
  if (window == 0) return slides;
  if (pattern && isArray(keys, Pattern)) {
    const auto flags = keys.countsPerLayer(Pattern, layers, 1, 0);
    for (uint32_t i = 0; i < layers; ++i) slides[i] = flags[i] == 1;
  } else {
    const uint32_t period = pattern ? keys.countOrZero(Pattern, UINT32_MAX) : 0;
    for (uint32_t i = 0; i < layers; ++i) slides[i] = pattern ? period > 0 && i % period != period - 1 : sliding(i);
  }
  forAttention(config, [&](Attention& attention, uint32_t layer) {
    if (slides[layer] && window < config.contextLength) attention.window = window;
  });
  return slides;
}

void mapSlidingRope(Keys& keys, Config& config, const std::vector<bool>& sliding, double base) {
  const auto first = std::find(sliding.begin(), sliding.end(), true);
  const bool any = first != sliding.end();
  const uint32_t keyLength = config.layers[any ? static_cast<size_t>(first - sliding.begin()) : 0].attention->keyLength;
  const Rope own = readSlidingRope(keys, keyLength, base, config.ropes[0].pairing);
  if (!any) return;
  const auto rope = static_cast<uint32_t>(config.ropes.size());
  config.ropes.push_back(own);
  forAttention(config, [&](Attention& attention, uint32_t layer) {
    if (sliding[layer]) attention.rope = rope;
  });
}

} // namespace mashbox::model
