#include "cpu/backend_cache.hpp"

#include <algorithm>

namespace mashbox::cpu {

uint64_t KvCache::blockBytes(const std::vector<Layer>& layers, bool half) {
  uint64_t elements = 0;
  for (const Layer& layer : layers) elements += layer.kvHeads * layer.headElements();
  return elements * (half ? 2 : 4);
}

Result<KvCache> KvCache::create(const std::vector<Layer>& layers, bool half, uint32_t blocks, const Kernels& kernels) {
  KvCache cache;
  cache.half_ = half;
  cache.kernels_ = &kernels;
  const uint64_t element = half ? 2 : 4;
  for (const Layer& layer : layers) {
    cache.places_.push_back({layer, cache.blockBytes_, layer.headElements() * element, uint64_t{kv::BlockTokens} * layer.keyLength * element});
    cache.blockBytes_ += layer.kvHeads * layer.headElements() * element;
  }
  auto memory = Region::reserve(blocks * cache.blockBytes_, "the KV cache");
  if (!memory) return memory.error();
  cache.memory_ = std::move(*memory);
  return cache;
}

void KvCache::write(kv::BlockId block, uint32_t layer, uint32_t head, uint32_t token, const float* key, const float* value) {
  const Place& place = places_[layer];
  const Layer& shape = place.layer;
  std::byte* const keys = headOf(block, layer, head);
  std::byte* const values = keys + place.keyBytes;
  const size_t row = size_t{token} * shape.valueStride();
  if (!half_) {
    auto* column = reinterpret_cast<float*>(keys) + token;
    for (uint32_t d = 0; d < shape.keyLength; ++d) column[size_t{d} * kv::BlockTokens] = key[d];
    std::copy_n(value, shape.valueLength, reinterpret_cast<float*>(values) + row);
    return;
  }
  constexpr uint32_t Piece = 64;
  auto* column = reinterpret_cast<uint16_t*>(keys) + token;
  for (uint32_t start = 0; start < shape.keyLength; start += Piece) {
    const uint32_t length = std::min(Piece, shape.keyLength - start);
    uint16_t halves[Piece];
    kernels_->floatToHalf(key + start, halves, length);
    for (uint32_t d = 0; d < length; ++d) column[size_t{start + d} * kv::BlockTokens] = halves[d];
  }
  kernels_->floatToHalf(value, reinterpret_cast<uint16_t*>(values) + row, shape.valueLength);
}

} // namespace mashbox::cpu
