#pragma once

#include "cpu/backend_memory.hpp"
#include "cpu/kernels.hpp"
#include "kv/block_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mashbox::cpu {

/// The K and V of some layers, block after block: layers × kv heads × (keys [keyLength][32 tokens], values [32 tokens][valueStride]),
/// in binary16 or float32. A block is one run of bytes over all layers. `valueStride` is the value length rounded up to 16; the
/// padding stays zero.
class KvCache {
public:
  struct Layer {
    uint32_t kvHeads, keyLength, valueLength;

    uint32_t valueStride() const { return (valueLength + 15) / 16 * 16; }
    uint64_t headElements() const { return uint64_t{kv::BlockTokens} * (keyLength + valueStride()); }
  };

  static uint64_t blockBytes(const std::vector<Layer>& layers, bool half);
  static Result<KvCache> create(const std::vector<Layer>& layers, bool half, uint32_t blocks, const Kernels& kernels);

  bool half() const { return half_; }
  /// `layer` counts within this cache.
  const std::byte* keys(kv::BlockId block, uint32_t layer, uint32_t head) const { return headOf(block, layer, head); }
  const std::byte* values(kv::BlockId block, uint32_t layer, uint32_t head) const { return headOf(block, layer, head) + places_[layer].keyBytes; }
  /// `token` counts within the block.
  void write(kv::BlockId block, uint32_t layer, uint32_t head, uint32_t token, const float* key, const float* value);

private:
  struct Place {
    Layer layer;
    uint64_t offset, headBytes, keyBytes;
  };

  std::byte* headOf(kv::BlockId block, uint32_t layer, uint32_t head) const {
    const Place& place = places_[layer];
    return memory_.data() + static_cast<uint64_t>(block) * blockBytes_ + place.offset + head * place.headBytes;
  }

  std::vector<Place> places_;
  uint64_t blockBytes_ = 0;
  bool half_ = false;
  const Kernels* kernels_ = nullptr;
  Region memory_;
};

} // namespace mashbox::cpu
