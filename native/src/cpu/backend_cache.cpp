#include "cpu/backend_cache.hpp"

#include <algorithm>

namespace mashbox::cpu {

Result<KvCache> KvCache::create(const Shape& shape, uint32_t blocks, const Kernels& kernels) {
  auto memory = Region::reserve(blocks * shape.blockBytes(), "the KV cache");
  if (!memory) return memory.error();
  KvCache cache;
  cache.shape_ = shape;
  cache.kernels_ = &kernels;
  cache.memory_ = std::move(*memory);
  return cache;
}

void KvCache::write(kv::BlockId block, uint32_t layer, uint32_t head, uint32_t token, const float* key, const float* value) {
  std::byte* const keys = headOf(block, layer, head);
  std::byte* const values = keys + uint64_t{kv::BlockTokens} * shape_.keyLength * shape_.elementBytes();
  const size_t row = size_t{token} * shape_.valueStride();
  if (!shape_.half) {
    auto* column = reinterpret_cast<float*>(keys) + token;
    for (uint32_t d = 0; d < shape_.keyLength; ++d) column[size_t{d} * kv::BlockTokens] = key[d];
    std::copy_n(value, shape_.valueLength, reinterpret_cast<float*>(values) + row);
    return;
  }
  constexpr uint32_t Piece = 64;
  auto* column = reinterpret_cast<uint16_t*>(keys) + token;
  for (uint32_t start = 0; start < shape_.keyLength; start += Piece) {
    const uint32_t length = std::min(Piece, shape_.keyLength - start);
    uint16_t halves[Piece];
    kernels_->floatToHalf(key + start, halves, length);
    for (uint32_t d = 0; d < length; ++d) column[size_t{start + d} * kv::BlockTokens] = halves[d];
  }
  kernels_->floatToHalf(value, reinterpret_cast<uint16_t*>(values) + row, shape_.valueLength);
}

} // namespace mashbox::cpu
