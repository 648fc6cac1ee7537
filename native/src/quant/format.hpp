#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mashbox::quant {

/// Tensor types by their GGUF id.
enum class Type : uint32_t {
  F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q8_1 = 9,
  Q2_K = 10, Q3_K = 11, Q4_K = 12, Q5_K = 13, Q6_K = 14, Q8_K = 15,
  IQ2_XXS = 16, IQ2_XS = 17, IQ3_XXS = 18, IQ1_S = 19, IQ4_NL = 20, IQ3_S = 21, IQ2_S = 22, IQ4_XS = 23,
  I8 = 24, I16 = 25, I32 = 26, I64 = 27, F64 = 28, IQ1_M = 29, BF16 = 30, TQ1_0 = 34, TQ2_0 = 35,
  MXFP4 = 39, NVFP4 = 40, Q1_0 = 41, Q2_0 = 42,
};

struct Format {
  Type type;
  const char* name;     ///< "Q4_K"
  uint32_t blockLength; ///< values per block
  uint32_t blockBytes;
  bool decodable;       ///< `dequantize` knows it
};

/// The format with that GGUF id; null for removed and unknown ids.
const Format* findFormat(uint32_t id);
inline const Format& format(Type type) { return *findFormat(static_cast<uint32_t>(type)); }

/// Bytes of a row of `length` values; `length` is a multiple of the block length.
inline size_t rowBytes(const Format& format, size_t length) { return length / format.blockLength * format.blockBytes; }

/// Exact float32 values of one row (`out.size()` is a multiple of the block length), bit for bit those of ggml.
void dequantize(Type type, const std::byte* blocks, std::span<float> out);

} // namespace mashbox::quant
