#include "quant/quantize.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

using namespace mashbox;
using test::check;
using test::Test;

namespace {

std::vector<float> decoded(quant::Type type, const std::vector<float>& values) {
  std::vector<std::byte> blocks(quant::rowBytes(quant::format(type), values.size()));
  quant::quantize(type, values, blocks.data());
  std::vector<float> out(values.size());
  quant::dequantize(type, blocks.data(), out);
  return out;
}

double relativeRms(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(double(a[i]) - b[i], 2);
    norm += std::pow(double(a[i]), 2);
  }
  return std::sqrt(difference / norm);
}

/// Round-to-nearest errors on normal noise; a misplaced nibble or scale gives errors near 1.
const Test roundTrip{"quant: what the quantizer writes, the decoder reads back", [] {
  struct Limit { quant::Type type; double rms; };
  const Limit limits[] = {{quant::Type::F32, 0}, {quant::Type::F16, 3e-4}, {quant::Type::BF16, 2.5e-3}, {quant::Type::Q8_0, 0.007},
                          {quant::Type::Q4_0, 0.12}, {quant::Type::Q4_1, 0.10}, {quant::Type::Q5_0, 0.06}, {quant::Type::Q5_1, 0.05},
                          {quant::Type::Q4_K, 0.10}, {quant::Type::Q5_K, 0.05}, {quant::Type::Q6_K, 0.03}};
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(4096);
  for (size_t i = 0; i < values.size(); ++i) values[i] = normal(random) * (1.0f + float(i / 256) * 0.3f);
  for (const Limit& limit : limits) {
    check(quant::encodable(limit.type));
    const double rms = relativeRms(values, decoded(limit.type, values));
    check(rms <= limit.rms, std::string(quant::format(limit.type).name) + ": relative rms " + std::to_string(rms));
  }
}};

const Test extremes{"quant: zeros, constants and tiny values stay finite and close", [] {
  for (uint32_t id = 0; id < 43; ++id) {
    const auto* format = quant::findFormat(id);
    if (format == nullptr || !quant::encodable(format->type)) continue;
    for (float value : {0.0f, 1.5f, -2.25f, 1e-30f, -1e-41f}) {
      const std::vector<float> values(256, value);
      for (float out : decoded(format->type, values))
        check(std::fabs(out - value) <= 0.04f * std::fabs(value) + 1e-6f, std::string(format->name) + " of " + std::to_string(value));
    }
  }
  check(!quant::encodable(quant::Type::IQ4_NL) && !quant::encodable(quant::Type::Q8_1));
}};

} // namespace
