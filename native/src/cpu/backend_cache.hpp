#pragma once

#include "cpu/backend_memory.hpp"
#include "cpu/kernels.hpp"
#include "kv/block_pool.hpp"

#include <cstddef>
#include <cstdint>

namespace mashbox::cpu {

/// The K and V of every block: blocks × layers × kv heads × (keys [keyLength][32 tokens], values [32 tokens][valueStride]), in
/// binary16 or float32. A block is one run of bytes over all layers. `valueStride` is the value length rounded up to 16; the
/// padding stays zero.
class KvCache {
public:
  struct Shape {
    uint32_t layers, kvHeads, keyLength, valueLength;
    bool half;

    uint32_t valueStride() const { return (valueLength + 15) / 16 * 16; }
    uint64_t elementBytes() const { return half ? 2 : 4; }
    uint64_t headBytes() const { return uint64_t{kv::BlockTokens} * (keyLength + valueStride()) * elementBytes(); }
    uint64_t layerBytes() const { return kvHeads * headBytes(); }
    uint64_t blockBytes() const { return layers * layerBytes(); }
  };

  static Result<KvCache> create(const Shape& shape, uint32_t blocks, const Kernels& kernels);

  const Shape& shape() const { return shape_; }
  const std::byte* keys(kv::BlockId block, uint32_t layer, uint32_t head) const { return headOf(block, layer, head); }
  const std::byte* values(kv::BlockId block, uint32_t layer, uint32_t head) const {
    return headOf(block, layer, head) + uint64_t{kv::BlockTokens} * shape_.keyLength * shape_.elementBytes();
  }
  /// `token` counts within the block.
  void write(kv::BlockId block, uint32_t layer, uint32_t head, uint32_t token, const float* key, const float* value);

private:
  std::byte* headOf(kv::BlockId block, uint32_t layer, uint32_t head) const {
    return memory_.data() + static_cast<uint64_t>(block) * shape_.blockBytes() + layer * shape_.layerBytes() + head * shape_.headBytes();
  }

  Shape shape_;
  const Kernels* kernels_ = nullptr;
  Region memory_;
};

} // namespace mashbox::cpu
