#include "model/config.hpp"

#include "base/text.hpp"
#include "model/family.hpp"
#include "model/refusals.hpp"
#include "model/tensors.hpp"

#include <algorithm>

namespace mashbox::model {
namespace {

constexpr uint64_t MostVocabulary = 1 << 24;

/// Rows of token_embd against the token list and `vocab_size`.
Result<void> readVocabularySize(Keys& keys, Config& config) {
  const std::string name = "token_embd.weight";
  const gguf::Tensor* embedding = keys.file().tensor(name);
  if (!embedding) return Error{ErrorKind::Inconsistent, name + ": the tensor is missing", name};
  const uint64_t rows = embedding->rows();
  if (rows < config.tokens || rows > MostVocabulary)
    return Error{ErrorKind::Inconsistent, name + ": " + std::to_string(rows) + " rows for " + std::to_string(config.tokens) + " tokens", name};
  config.vocabulary = static_cast<uint32_t>(rows);
  const uint32_t size = keys.countOr("vocab_size", MostVocabulary, config.vocabulary);
  if (size != config.vocabulary && size != config.tokens)
    keys.fail(ErrorKind::Inconsistent, "vocab_size",
              std::to_string(size) + ", but token_embd.weight has " + std::to_string(rows) + " rows");
  return {};
}

/// What the forward program takes for granted.
void checkLayers(Keys& keys, const Config& config) {
  forAttention(config, [&](const Attention& attention, uint32_t layer) {
    const auto inconsistent = [&](std::string_view key, const std::string& message) {
      keys.fail(ErrorKind::Inconsistent, key, "layer " + std::to_string(layer) + ": " + message);
    };
    if (attention.rope && config.ropes[*attention.rope].dims > attention.keyLength)
      inconsistent("rope.dimension_count", std::to_string(config.ropes[*attention.rope].dims) + " of " + std::to_string(attention.keyLength) + " values turn");
    if ((attention.valueIsKey || attention.gate == OutputGate::Sigmoid) && attention.valueLength != attention.keyLength)
      inconsistent("attention.value_length", std::to_string(attention.valueLength) + " is not the key length of " + std::to_string(attention.keyLength));
    if (!attention.cacheOf) return;
    const Attention& owner = *config.layers[*attention.cacheOf].attention;
    if (owner.kvHeads != attention.kvHeads || owner.keyLength != attention.keyLength || owner.valueLength != attention.valueLength || owner.window != attention.window)
      inconsistent("attention.shared_kv_layers", "its keys and values have another shape than those of layer " + std::to_string(*attention.cacheOf));
  });
}

} // namespace

uint32_t Config::window() const {
  uint32_t widest = 0;
  forAttention(*this, [&](const Attention& attention, uint32_t) { widest = std::max(widest, attention.window); });
  return widest;
}

Result<Config> readConfig(const gguf::File& file) {
  Keys keys(file);
  if (keys.error()) return *keys.error();
  const Family* family = findFamily(keys.architecture());
  if (!family)
    return Error{ErrorKind::Unsupported,
                 "general.architecture: \"" + escaped(keys.architecture()) + "\" is not one of " + familyNames(), "general.architecture"};

  Config config;
  config.architecture = keys.architecture();
  family->map(keys, config);
  refuseUnseenKeys(keys);
  for (const LayerConfig& layer : config.layers)
    if (layer.feedForward == 0 && !layer.experts) keys.fail(ErrorKind::Invalid, "feed_forward_length", "a layer without experts has a feed-forward of width 0");
  if (!keys.error()) checkLayers(keys, config);
  if (keys.error()) return *keys.error();

  const auto tokens = file.requireStrings("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  if (tokens->empty() || tokens->size() > MostVocabulary)
    return Error{ErrorKind::Invalid, "tokenizer.ggml.tokens: " + std::to_string(tokens->size()) + " tokens", "tokenizer.ggml.tokens"};
  config.tokens = static_cast<uint32_t>(tokens->size());
  if (auto checked = readVocabularySize(keys, config); !checked) return checked.error();
  if (keys.error()) return *keys.error();
  config.tied = file.tensor("output.weight") == nullptr;

  if (auto tensors = bindTensors(file, config); !tensors) return tensors.error();
  for (const Rope& rope : config.ropes)
    if (rope.dims % 2 != 0) keys.fail(ErrorKind::Invalid, "attention.key_length", std::to_string(rope.dims) + " is odd");
  if (keys.error()) return *keys.error();
  return config;
}

} // namespace mashbox::model
