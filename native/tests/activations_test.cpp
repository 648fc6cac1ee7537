#include "cpu/kernels.hpp"
#include "model_session.hpp"
#include "test.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using test::check;
using test::Test;

std::vector<float> randomValues(size_t count, std::mt19937& random, float deviation) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> out(count);
  for (float& value : out) value = normal(random);
  return out;
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * x * (1 + 0.044715 * x * x))); }

const Test geluMul{"kernels: geluMul equals double arithmetic for any length", [] {
  std::mt19937 random(5);
  for (const cpu::Isa isa : test::availableTiers())
    for (const size_t n : {1, 7, 8, 15, 16, 17, 33, 64, 65, 200, 577}) {
      const auto gate = randomValues(n, random, 3), up = randomValues(n, random, 1);
      std::vector<float> out = gate;
      out.push_back(42);
      cpu::kernels(isa).geluMul(out.data(), up.data(), out.data(), n);
      for (size_t i = 0; i < n; ++i)
        check(std::abs(out[i] - gelu(gate[i]) * up[i]) <= 2e-6 * std::abs(up[i]), std::string(cpu::isaName(isa)) + " gelu of " + std::to_string(gate[i]));
      check(out[n] == 42, "nothing behind the end is written");
    }
}};

const Test softcap{"kernels: softcap equals double arithmetic for any length and any size of value", [] {
  std::mt19937 random(6);
  for (const cpu::Isa isa : test::availableTiers())
    for (const size_t n : {1, 7, 8, 15, 16, 17, 32, 65, 200})
      for (const float cap : {0.5f, 30.0f, 50.0f})
        for (const float deviation : {0.01f, 20.0f, 1e6f}) {
          const auto values = randomValues(n, random, deviation);
          std::vector<float> out = values;
          out.push_back(42);
          cpu::kernels(isa).softcap(out.data(), cap, n);
          for (size_t i = 0; i < n; ++i)
            check(std::abs(out[i] - cap * std::tanh(static_cast<double>(values[i]) / cap)) <= 5e-7 * cap,
                  std::string(cpu::isaName(isa)) + " soft-capped " + std::to_string(values[i]));
          check(out[n] == 42, "nothing behind the end is written");
        }
}};

} // namespace
} // namespace mashbox
