#include "model_session.hpp"
#include "random_rows.hpp"
#include "test.hpp"

#include "base/float16.hpp"
#include "cpu/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using cpu::Isa;
using cpu::Kernels;
using test::availableTiers;
using test::check;
using test::Random;
using test::randomValues;
using test::Rows;
using test::Test;

constexpr float Infinity = std::numeric_limits<float>::infinity();

const Test quantizing{"kernels: quantizeRow rounds to nearest, keeps sums, and is the same in every tier", [] {
  Random random(3);
  std::vector<float> values = randomValues(640, random, 3);
  std::fill_n(values.begin() + 32, 32, 0.0f);
  std::fill_n(values.begin() + 64, 32, 1e-39f);
  std::fill_n(values.begin() + 96, 32, -2.5f);
  values[130] = 3e38f;
  const Rows expected(cpu::kernels(Isa::Scalar), values, 1);
  for (size_t b = 0; b < values.size() / 32; ++b) {
    float amax = 0;
    for (size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(values[32 * b + i]));
    if (amax < 1e-30f) check(expected.scale[b] == 0, "a block of zeros has scale 0");
    else check(std::fabs(expected.scale[b] - amax / 127) <= 1e-6f * amax, "scale is amax / 127");
    for (size_t i = 32 * b; i < 32 * b + 32; ++i) {
      check(std::abs(int(expected.q[i])) <= 127, "codes stay within 127");
      check(std::fabs(double(expected.q[i]) * expected.scale[b] - values[i]) <= 0.5001 * expected.scale[b] + 1e-38, "rounds to nearest");
    }
    for (size_t h = 2 * b; h < 2 * b + 2; ++h) {
      int sum = 0;
      for (size_t i = 0; i < 16; ++i) sum += expected.q[16 * h + i];
      check(expected.sum16[h] == sum, "sums of sixteen");
    }
  }
  for (const Isa isa : availableTiers()) {
    const Rows got(cpu::kernels(isa), values, 1);
    check(got.q == expected.q && got.scale == expected.scale && got.sum16 == expected.sum16, cpu::isaName(isa));
  }
}};

const Test halves{"kernels: every half converts to float and back exactly", [] {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
  for (const Isa isa : availableTiers()) {
    std::vector<float> wide(all.size());
    cpu::kernels(isa).halfToFloat(all.data(), wide.data(), all.size());
    std::vector<uint16_t> back(all.size());
    cpu::kernels(isa).floatToHalf(wide.data(), back.data(), wide.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const unsigned exponent = i >> 10 & 31, mantissa = i & 1023;
      const double magnitude = exponent ? std::ldexp(1024 + mantissa, int(exponent) - 25) : std::ldexp(mantissa, -24);
      if (exponent == 31 && mantissa) {
        check(std::isnan(wide[i]) && back[i] == (i | 0x200), "NaN");
        continue;
      }
      check(wide[i] == float(exponent == 31 ? Infinity : magnitude) * (i & 0x8000 ? -1.0f : 1.0f), "half to float");
      check(std::signbit(wide[i]) == bool(i & 0x8000) && back[i] == all[i], "float to half");
    }
  }
}};

const Test rounding{"kernels: floatToHalf rounds to nearest even at every boundary", [] {
  std::vector<float> values;
  std::vector<uint16_t> expected;
  for (unsigned i = 0; i < 0x7c00; ++i) {
    const float low = halfToFloat(uint16_t(i)), high = i + 1 < 0x7c00 ? halfToFloat(uint16_t(i + 1)) : 65536.0f;
    const float middle = (low + high) / 2; // exact
    values.insert(values.end(), {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, Infinity), -middle});
    const uint16_t even = uint16_t(i + (i & 1));
    expected.insert(expected.end(), {even, uint16_t(i), uint16_t(i + 1), uint16_t(even | 0x8000)});
  }
  for (const float value : {Infinity, 1e30f, -Infinity, 1e-40f, -1e-40f}) values.push_back(value);
  expected.insert(expected.end(), {0x7c00, 0x7c00, 0xfc00, 0, 0x8000});
  for (const Isa isa : availableTiers()) {
    std::vector<uint16_t> got(values.size());
    cpu::kernels(isa).floatToHalf(values.data(), got.data(), values.size());
    check(got == expected, cpu::isaName(isa));
  }
}};

const Test vectors{"kernels: dot products, axpy, rmsNorm, siluMul and softmax equal double arithmetic for any length", [] {
  Random random(17);
  for (const Isa isa : availableTiers()) {
    const Kernels& kernels = cpu::kernels(isa);
    for (size_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 128, 200, 576, 1000}) {
      const std::string what = std::string(cpu::isaName(isa)) + " n=" + std::to_string(n);
      const std::vector<float> a = randomValues(n, random, 4), b = randomValues(n, random), guard{1, 2, 3, 4};
      std::vector<uint16_t> half(n);
      kernels.floatToHalf(b.data(), half.data(), n);
      double dot = 0, dotHalf = 0, magnitude = 0, squares = 0;
      for (size_t i = 0; i < n; ++i) {
        dot += double(a[i]) * b[i];
        dotHalf += double(a[i]) * halfToFloat(half[i]);
        magnitude += std::fabs(double(a[i]) * b[i]);
        squares += double(a[i]) * a[i];
      }
      check(std::fabs(kernels.dotF32(a.data(), b.data(), n) - dot) <= 1e-6 * magnitude, "dotF32 " + what);
      check(std::fabs(kernels.dotF16(a.data(), half.data(), n) - dotHalf) <= 1e-6 * magnitude, "dotF16 " + what);

      double peak = 0;
      for (const float value : a) peak = std::max(peak, std::fabs(double(value)));
      const auto run = [&](const char* name, const auto& kernel, const auto& expected) {
        std::vector<float> out = a;
        out.insert(out.end(), guard.begin(), guard.end());
        kernel(out.data());
        for (size_t i = 0; i < n; ++i) {
          const double exact = expected(i);
          // An argument of exp that was rounded to float is off by 2^-24 of itself.
          check(std::fabs(out[i] - exact) <= (5e-7 + 6e-8 * 2 * peak) * std::fabs(exact) + 1e-37, name + (" " + what) + ": " + std::to_string(out[i]) + " for " + std::to_string(exact));
        }
        check(std::equal(guard.begin(), guard.end(), out.begin() + ptrdiff_t(n)), name + (" writes too far: " + what));
      };
      const float factor = 0.37f;
      std::vector<float> sum = a;
      kernels.axpyF32(factor, b.data(), sum.data(), n);
      for (size_t i = 0; i < n; ++i) check(std::fabs(sum[i] - (a[i] + double(factor) * b[i])) <= 2e-7 * (std::fabs(a[i]) + std::fabs(b[i])), "axpyF32 " + what);
      sum = a;
      kernels.axpyF16(factor, half.data(), sum.data(), n);
      for (size_t i = 0; i < n; ++i)
        check(std::fabs(sum[i] - (a[i] + double(factor) * halfToFloat(half[i]))) <= 2e-7 * (std::fabs(a[i]) + std::fabs(b[i])), "axpyF16 " + what);

      const double norm = 1 / std::sqrt(squares / double(n) + 1e-5);
      run("rmsNorm", [&](float* x) { kernels.rmsNorm(x, b.data(), 1e-5f, x, n); }, [&](size_t i) { return a[i] * norm * b[i]; });
      run("siluMul", [&](float* x) { kernels.siluMul(x, b.data(), x, n); }, [&](size_t i) { return a[i] / (1 + std::exp(-double(a[i]))) * b[i]; });
      double max = -1e30, total = 0;
      for (const float value : a) max = std::max(max, double(value));
      for (const float value : a) total += std::exp(value - max);
      run("softmax", [&](float* x) { kernels.softmax(x, n); }, [&](size_t i) { return std::exp(a[i] - max) / total; });
    }
  }
}};

const Test exponentials{"kernels: siluMul and softmax hold at the edges of float", [] {
  for (const Isa isa : availableTiers()) {
    const Kernels& kernels = cpu::kernels(isa);
    const std::string what = cpu::isaName(isa);
    std::vector<float> gate, out;
    for (float x = -95; x <= 95; x += 0.0137f) gate.push_back(x);
    out.resize(gate.size());
    const std::vector<float> ones(gate.size(), 1);
    kernels.siluMul(gate.data(), ones.data(), out.data(), gate.size());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double exact = gate[i] / (1 + std::exp(-double(gate[i])));
      check(std::fabs(out[i] - exact) <= 4e-7 * std::fabs(exact) + 1e-35, "silu " + what + " at " + std::to_string(gate[i]));
    }
    std::vector<float> edge{1e30f, -1e30f, Infinity, 0, -0.0f, std::numeric_limits<float>::quiet_NaN()};
    kernels.siluMul(edge.data(), ones.data(), edge.data(), edge.size());
    check(edge[0] == 1e30f && edge[1] == 0 && edge[2] == Infinity && edge[3] == 0 && edge[4] == 0 && std::isnan(edge[5]), "silu of extremes " + what);

    std::vector<float> masked(40, -Infinity);
    kernels.softmax(masked.data(), masked.size());
    check(std::all_of(masked.begin(), masked.end(), [](float x) { return x == 0; }), "softmax of nothing " + what);
    masked.assign(40, -Infinity);
    masked[3] = masked[37] = 500;
    masked[9] = 300;
    kernels.softmax(masked.data(), masked.size());
    check(masked[3] == 0.5f && masked[37] == 0.5f && masked[9] == 0 && masked[0] == 0, "softmax of large and masked values " + what);
    kernels.softmax(masked.data(), 0);
  }
}};

const Test order{"kernels: rmsNorm is the same in every tier", [] {
  Random random(23);
  for (const size_t n : {5, 24, 576, 1001}) {
    const std::vector<float> x = randomValues(n, random), weight = randomValues(n, random);
    std::vector<float> expected(n), got(n);
    cpu::kernels(Isa::Scalar).rmsNorm(x.data(), weight.data(), 1e-6f, expected.data(), n);
    for (const Isa isa : availableTiers()) {
      cpu::kernels(isa).rmsNorm(x.data(), weight.data(), 1e-6f, got.data(), n);
      check(got == expected, cpu::isaName(isa));
    }
  }
}};

} // namespace
} // namespace mashbox
