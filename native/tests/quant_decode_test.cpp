#include "base/float16.hpp"
#include "json.hpp"
#include "quant/format.hpp"
#include "test.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

using namespace mashbox;
using test::check;
using test::Test;

namespace {

/// Every format that golden/quants has blocks of must come out of `dequantize` bit for bit (any NaN equals any NaN).
const Test goldenBlocks{"quant: every golden block decodes bit for bit", [] {
  const auto folder = test::golden("quants/blocks.json").parent_path();
  const auto index = test::Json::load(folder / "blocks.json");
  check(index["formats"].size() >= 16, "blocks.json lists its formats");
  for (const auto& entry : index["formats"].list()) {
    const std::string name = entry["type"].string();
    const auto* format = quant::findFormat(uint32_t(entry["id"].integer()));
    check(format != nullptr, name + " is known");
    check(format->name == name, name + " has its name");
    check(format->blockLength == entry["block"].integer() && format->blockBytes == entry["bytes"].integer(), name + " has its block size");
    check(format->decodable, name + " is decodable");

    const std::string raw = test::readFile(folder / entry["raw"].string());
    const std::string wanted = test::readFile(folder / entry["values"].string());
    const size_t count = size_t(entry["blocks"].integer()) * format->blockLength;
    check(raw.size() == count / format->blockLength * format->blockBytes && wanted.size() == 4 * count, name + " files have their size");
    std::vector<float> values(count);
    quant::dequantize(format->type, reinterpret_cast<const std::byte*>(raw.data()), values);
    for (size_t i = 0; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, wanted.data() + 4 * i, 4);
      const bool equal = std::bit_cast<uint32_t>(values[i]) == bits || (std::isnan(values[i]) && std::isnan(std::bit_cast<float>(bits)));
      check(equal, name + " value " + std::to_string(i) + ": " + std::to_string(values[i]) + " instead of " +
                     std::to_string(std::bit_cast<float>(bits)));
    }
  }
}};

const Test formatTable{"quant: the format table knows the ids of GGUF and no others", [] {
  const std::set<uint32_t> absent{4, 5, 31, 32, 33, 36, 37, 38};
  for (uint32_t id = 0; id < 43; ++id) {
    const auto* format = quant::findFormat(id);
    check((format == nullptr) == absent.contains(id), "id " + std::to_string(id));
    if (format != nullptr) check(static_cast<uint32_t>(format->type) == id, "id " + std::to_string(id) + " finds itself");
  }
  for (uint32_t id : {43u, 99u, 0x7fffffffu, 0xffffffffu}) check(quant::findFormat(id) == nullptr);
  for (quant::Type type : {quant::Type::Q8_1, quant::Type::IQ1_S, quant::Type::I32}) check(!quant::format(type).decodable);
  check(quant::rowBytes(quant::format(quant::Type::Q4_K), 512) == 288);
}};

const Test halfRoundTrip{"base: every half survives the way to float and back", [] {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = halfToFloat(uint16_t(bits));
    if (std::isnan(value))
      check((floatToHalf(value) & 0x7fff) > 0x7c00, "NaN stays NaN");
    else
      check(floatToHalf(value) == bits, "half " + std::to_string(bits));
  }
}};

const Test halfRounding{"base: floats round to the nearest half, ties to even", [] {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = halfToFloat(uint16_t(bits)), high = halfToFloat(uint16_t(bits + 1));
    const float middle = low + (high - low) / 2;
    check(floatToHalf(middle) == bits + (bits & 1), "tie above " + std::to_string(bits));
    check(floatToHalf(std::nextafter(middle, 0.0f)) == bits, "below the tie above " + std::to_string(bits));
    check(floatToHalf(std::nextafter(middle, 1e30f)) == bits + 1, "above the tie above " + std::to_string(bits));
  }
  check(floatToHalf(65519.99f) == 0x7bff && floatToHalf(65520.0f) == 0x7c00 && floatToHalf(-1e30f) == 0xfc00);
  check(floatToHalf(0x1p-25f) == 0 && floatToHalf(std::nextafter(0x1p-25f, 1.0f)) == 1);
}};

const Test bfloatRounding{"base: floats round to the nearest bfloat16, ties to even", [] {
  check(floatToBfloat16(1.0f) == 0x3f80);
  check(floatToBfloat16(std::bit_cast<float>(0x3f808000u)) == 0x3f80 && floatToBfloat16(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
  check(floatToBfloat16(std::bit_cast<float>(0x3f808001u)) == 0x3f81);
  check(std::isnan(bfloat16ToFloat(floatToBfloat16(std::bit_cast<float>(0x7f800001u)))), "a NaN whose mantissa is cut off stays NaN");
}};

} // namespace
