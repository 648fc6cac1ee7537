#include "quant/format.hpp"

#include "quant/blocks.hpp"

#include <array>
#include <bit>

namespace mashbox::quant {

static_assert(std::endian::native == std::endian::little, "GGUF blocks are read in place");

namespace {

struct Entry {
  Format format;
  DecodeBlocks decode;

  constexpr Entry(Type type, const char* name, uint32_t length, uint32_t bytes)
      : format{type, name, length, bytes, false}, decode(nullptr) {}
  constexpr Entry(Type type, const char* name, uint32_t length, uint32_t bytes, DecodeBlocks decoder)
      : format{type, name, length, bytes, true}, decode(decoder) {}
};

constexpr Entry entries[] = {
  {Type::F32, "F32", 1, 4, decodeF32},
  {Type::F16, "F16", 1, 2, decodeF16},
  {Type::Q4_0, "Q4_0", 32, 18, decodeQ4_0},
  {Type::Q4_1, "Q4_1", 32, 20, decodeQ4_1},
  {Type::Q5_0, "Q5_0", 32, 22, decodeQ5_0},
  {Type::Q5_1, "Q5_1", 32, 24, decodeQ5_1},
  {Type::Q8_0, "Q8_0", 32, 34, decodeQ8_0},
  {Type::Q8_1, "Q8_1", 32, 36},
  {Type::Q2_K, "Q2_K", 256, 84, decodeQ2_K},
  {Type::Q3_K, "Q3_K", 256, 110, decodeQ3_K},
  {Type::Q4_K, "Q4_K", 256, 144, decodeQ4_K},
  {Type::Q5_K, "Q5_K", 256, 176, decodeQ5_K},
  {Type::Q6_K, "Q6_K", 256, 210, decodeQ6_K},
  {Type::Q8_K, "Q8_K", 256, 292},
  {Type::IQ2_XXS, "IQ2_XXS", 256, 66},
  {Type::IQ2_XS, "IQ2_XS", 256, 74},
  {Type::IQ3_XXS, "IQ3_XXS", 256, 98},
  {Type::IQ1_S, "IQ1_S", 256, 50},
  {Type::IQ4_NL, "IQ4_NL", 32, 18, decodeIQ4_NL},
  {Type::IQ3_S, "IQ3_S", 256, 110},
  {Type::IQ2_S, "IQ2_S", 256, 82},
  {Type::IQ4_XS, "IQ4_XS", 256, 136, decodeIQ4_XS},
  {Type::I8, "I8", 1, 1},
  {Type::I16, "I16", 1, 2},
  {Type::I32, "I32", 1, 4},
  {Type::I64, "I64", 1, 8},
  {Type::F64, "F64", 1, 8},
  {Type::IQ1_M, "IQ1_M", 256, 56},
  {Type::BF16, "BF16", 1, 2, decodeBF16},
  {Type::TQ1_0, "TQ1_0", 256, 54},
  {Type::TQ2_0, "TQ2_0", 256, 66},
  {Type::MXFP4, "MXFP4", 32, 17, decodeMXFP4},
  {Type::NVFP4, "NVFP4", 64, 36, decodeNVFP4},
  {Type::Q1_0, "Q1_0", 128, 18},
  {Type::Q2_0, "Q2_0", 64, 18},
};

constexpr uint32_t idCount = 43;

constexpr auto entryById = [] {
  std::array<const Entry*, idCount> table{};
  for (const Entry& entry : entries) table[static_cast<uint32_t>(entry.format.type)] = &entry;
  return table;
}();

const Entry* findEntry(uint32_t id) { return id < idCount ? entryById[id] : nullptr; }

} // namespace

const Format* findFormat(uint32_t id) {
  const Entry* entry = findEntry(id);
  return entry ? &entry->format : nullptr;
}

DecodeBlocks findDecoder(uint32_t id) {
  const Entry* entry = findEntry(id);
  return entry ? entry->decode : nullptr;
}

void dequantize(Type type, const std::byte* blocks, std::span<float> out) {
  const Entry& entry = *findEntry(static_cast<uint32_t>(type));
  entry.decode(reinterpret_cast<const uint8_t*>(blocks), out.size() / entry.format.blockLength, out.data());
}

} // namespace mashbox::quant
