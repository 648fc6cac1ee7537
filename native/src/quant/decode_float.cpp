#include "quant/blocks.hpp"

namespace mashbox::quant {

void decodeF32(const uint8_t* blocks, size_t count, float* out) {
  if (count != 0) std::memcpy(out, blocks, count * sizeof(float));
}

void decodeF16(const uint8_t* blocks, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = loadHalf(blocks + 2 * i);
}

void decodeBF16(const uint8_t* blocks, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = bfloat16ToFloat(loadU16(blocks + 2 * i));
}

} // namespace mashbox::quant
