#include "test.hpp"

#include "base/float16.hpp"
#include "cpu/kernels.hpp"
#include "quant/quantize.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace mashbox;
using cpu::Isa;
using cpu::Kernels;
using quant::Type;
using test::check;
using test::Test;

namespace {

constexpr float Infinity = std::numeric_limits<float>::infinity();

constexpr Type Int8Types[] = {Type::Q4_0, Type::Q4_1, Type::Q5_0, Type::Q5_1, Type::Q8_0, Type::Q4_K, Type::Q5_K, Type::Q6_K, Type::IQ4_NL, Type::IQ4_XS, Type::MXFP4};
constexpr Type FloatTypes[] = {Type::F32, Type::F16, Type::BF16};
constexpr Type OtherTypes[] = {Type::Q2_K, Type::Q3_K, Type::NVFP4};

/// The tiers that this CPU runs.
std::vector<Isa> tiers() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Amx})
    if (isa <= cpu::detectIsa()) all.push_back(isa);
  return all;
}

using Random = std::mt19937;

std::vector<float> randomValues(size_t n, Random& random, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

/// Blocks of random bytes, with the scales (halves at these offsets of each block) replaced by moderate ones of either sign.
std::vector<std::byte> randomBlocks(Type type, size_t rows, size_t length, Random& random) {
  const quant::Format& format = quant::format(type);
  std::vector<std::byte> bytes(rows * quant::rowBytes(format, length));
  std::uniform_int_distribution<int> anyByte(0, 255);
  for (std::byte& byte : bytes) byte = std::byte(anyByte(random));
  std::vector<size_t> halves;
  switch (type) {
  case Type::Q4_1:
  case Type::Q5_1:
  case Type::Q4_K:
  case Type::Q5_K: halves = {0, 2}; break;
  case Type::Q2_K: halves = {80, 82}; break;
  case Type::Q3_K: halves = {108}; break;
  case Type::Q6_K: halves = {208}; break;
  case Type::MXFP4:
    for (size_t at = 0; at < bytes.size(); at += format.blockBytes) bytes[at] = std::byte(120 + anyByte(random) % 10);
    break;
  case Type::NVFP4:
    for (size_t at = 0; at < bytes.size(); at += format.blockBytes)
      for (size_t i = 0; i < 4; ++i) bytes[at + i] = std::byte(anyByte(random) % 100);
    break;
  default: halves = {0};
  }
  std::normal_distribution<float> normal(0, 0.02f);
  for (size_t at = 0; at < bytes.size(); at += format.blockBytes)
    for (const size_t offset : halves) {
      const uint16_t half = floatToHalf(normal(random));
      std::memcpy(bytes.data() + at + offset, &half, 2);
    }
  return bytes;
}

/// Random weights; `extreme` ones have random codes and scales of both signs instead of a distribution's.
std::vector<std::byte> randomWeights(Type type, size_t rows, size_t length, Random& random, bool extreme) {
  const size_t rowBytes = quant::rowBytes(quant::format(type), length);
  if (!quant::encodable(type) || (extreme && cpu::usesInt8(type))) return randomBlocks(type, rows, length, random);
  std::vector<std::byte> bytes(rows * rowBytes);
  for (size_t r = 0; r < rows; ++r) quant::quantize(type, randomValues(length, random, 0.1f), bytes.data() + r * rowBytes);
  return bytes;
}

/// Activation rows in both forms, quantized by `kernels`.
struct Rows {
  std::vector<float> f32, scale;
  std::vector<int8_t> q;
  std::vector<int16_t> sum16;
  cpu::Activations view;

  Rows(const Kernels& kernels, std::vector<float> values, size_t rows) : f32(std::move(values)) {
    const size_t length = f32.size() / rows;
    view = {rows, length, f32.data(), nullptr, nullptr, nullptr};
    if (length % 32 != 0) return;
    scale.resize(f32.size() / 32);
    q.resize(f32.size());
    sum16.resize(f32.size() / 16);
    for (size_t m = 0; m < rows; ++m)
      kernels.quantizeRow(f32.data() + m * length, length, q.data() + m * length, scale.data() + m * length / 32, sum16.data() + m * length / 16);
    view = {rows, length, f32.data(), q.data(), scale.data(), sum16.data()};
  }

  /// What a dot product of row m sees at k.
  double value(size_t m, size_t k, bool int8) const {
    const size_t i = m * view.length + k;
    return int8 ? double(q[i]) * scale[i / 32] : f32[i];
  }
  cpu::Activations one(size_t m) const {
    const size_t k = view.length;
    return {1, k, f32.data() + m * k, q.data() + m * k, scale.data() + m * (k / 32), sum16.data() + m * (k / 16)};
  }
};

std::vector<float> multiply(const Kernels& kernels, Type type, const std::byte* weights, size_t rowCount, const cpu::Activations& x) {
  std::vector<float> out(x.rows * rowCount, std::numeric_limits<float>::quiet_NaN());
  kernels.matmulRows(type, weights, quant::rowBytes(quant::format(type), x.length), rowCount, x, out.data(), rowCount);
  return out;
}

std::string describe(Isa isa, Type type, size_t rows, size_t length, size_t m) {
  return std::string(cpu::isaName(isa)) + " " + quant::format(type).name + " rows=" + std::to_string(rows) + " K=" + std::to_string(length) + " M=" + std::to_string(m);
}

struct Shape {
  size_t length, rowCount, columns;
};

/// Every output against a double sum over the operands that the kernel reads.
void compareWithDouble(Type type, Shape shape, bool extreme, Random& random) {
  const bool int8 = cpu::usesInt8(type);
  const std::vector<std::byte> weights = randomWeights(type, shape.rowCount, shape.length, random, extreme);
  const size_t rowBytes = quant::rowBytes(quant::format(type), shape.length);
  const Rows x(cpu::kernels(Isa::Scalar), randomValues(shape.columns * shape.length, random), shape.columns);
  std::vector<std::vector<float>> outs;
  for (const Isa isa : tiers()) outs.push_back(multiply(cpu::kernels(isa), type, weights.data(), shape.rowCount, x.view));
  std::vector<float> row(shape.length);
  for (size_t r = 0; r < shape.rowCount; ++r) {
    quant::dequantize(type, weights.data() + r * rowBytes, row);
    for (size_t m = 0; m < shape.columns; ++m) {
      double exact = 0, magnitude = 0;
      for (size_t k = 0; k < shape.length; ++k) {
        const double product = double(row[k]) * x.value(m, k, int8);
        exact += product;
        magnitude += std::fabs(product);
      }
      // A minimum's term can be far larger than the values that it makes.
      const double minimums = int8 ? 20 : 1;
      for (size_t i = 0; i < outs.size(); ++i) {
        const float got = outs[i][m * shape.rowCount + r];
        check(std::fabs(got - exact) <= 1e-6 * minimums * magnitude + 1e-30,
              describe(tiers()[i], type, shape.rowCount, shape.length, shape.columns) + ": " + std::to_string(got) + " for " + std::to_string(exact));
        if (int8) check(got == outs[0][m * shape.rowCount + r], describe(tiers()[i], type, shape.rowCount, shape.length, shape.columns) + " differs from scalar");
      }
    }
  }
}

size_t anyLength(Type type, Random& random) {
  const size_t block = quant::format(type).blockLength;
  const size_t most = block == 1 ? 700 : block == 256 ? 5 : 40;
  return block * (1 + random() % most);
}

void compareShapes(std::span<const Type> types, bool extreme) {
  Random random(7);
  for (const Type type : types) {
    for (int i = 0; i < 8; ++i) compareWithDouble(type, {anyLength(type, random), 1 + random() % 40, 1 + random() % 9}, extreme, random);
    for (const size_t columns : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15}) compareWithDouble(type, {anyLength(type, random), 1 + random() % 40, columns}, extreme, random);
    compareWithDouble(type, {quant::format(type).blockLength, 1, 1}, extreme, random);
  }
}

const Test int8Products{"kernels: 8-bit products equal a double sum and the scalar tier", [] { compareShapes(Int8Types, false); }};
const Test extremeProducts{"kernels: 8-bit products of random codes and negative scales", [] { compareShapes(Int8Types, true); }};
const Test floatProducts{"kernels: F32, F16 and BF16 products equal a double sum for any length", [] { compareShapes(FloatTypes, false); }};
const Test otherProducts{"kernels: formats without a kernel of their own are dequantized", [] { compareShapes(OtherTypes, false); }};

const Test limits{"kernels: the largest codes do not overflow", [] {
  for (const Type type : Int8Types) {
    const size_t length = 512, rowCount = 3, columns = 9;
    for (const uint8_t fill : {0x00, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> weights(rowCount * quant::rowBytes(quant::format(type), length), std::byte{fill});
      const quant::Format& format = quant::format(type);
      const uint16_t one = 0x3c00, minusTwo = 0xc000;
      for (size_t at = 0; at < weights.size(); at += format.blockBytes) {
        std::byte* scale = weights.data() + at + (type == Type::Q6_K ? 208 : 0);
        if (type == Type::MXFP4) *scale = std::byte{127};
        else std::memcpy(scale, &one, 2);
        if (type == Type::Q4_1 || type == Type::Q5_1 || type == Type::Q4_K || type == Type::Q5_K) std::memcpy(scale + 2, &minusTwo, 2);
      }
      for (const float sign : {1.0f, -1.0f, 0.0f}) {
        Rows x(cpu::kernels(Isa::Scalar), std::vector<float>(columns * length, sign), columns);
        std::vector<float> row(length);
        quant::dequantize(type, weights.data(), row);
        double exact = 0, magnitude = 0;
        for (size_t k = 0; k < length; ++k) exact += row[k] * x.value(0, k, true), magnitude += std::fabs(row[k]);
        const std::vector<float> scalar = multiply(cpu::kernels(Isa::Scalar), type, weights.data(), rowCount, x.view);
        for (const Isa isa : tiers()) {
          const std::vector<float> out = multiply(cpu::kernels(isa), type, weights.data(), rowCount, x.view);
          check(out == scalar, describe(isa, type, rowCount, length, columns) + " differs from scalar");
          for (const float value : out)
            check(std::fabs(value - exact) <= 2e-5 * magnitude, describe(isa, type, rowCount, length, columns) + ": " + std::to_string(value) + " for " + std::to_string(exact));
        }
      }
    }
  }
}};

const Test exponents{"kernels: MXFP4 blocks of every exponent are the same in every tier", [] {
  Random random(31);
  const size_t length = 256 * 32, columns = 6;
  std::vector<std::byte> row = randomBlocks(Type::MXFP4, 1, length, random);
  for (size_t e = 0; e < 256; ++e) row[17 * e] = std::byte(e);
  for (size_t first = 0; first < 256; first += 4) {
    // Four blocks at a time, so that large exponents do not hide small ones; small activations, so that none overflows.
    const Rows x(cpu::kernels(Isa::Scalar), randomValues(columns * 128, random, 1e-3f), columns);
    std::vector<float> values(128);
    quant::dequantize(Type::MXFP4, row.data() + 17 * first, values);
    const std::vector<float> expected = multiply(cpu::kernels(Isa::Scalar), Type::MXFP4, row.data() + 17 * first, 1, x.view);
    for (size_t m = 0; m < columns; ++m) {
      double exact = 0, magnitude = 0;
      for (size_t k = 0; k < 128; ++k) exact += values[k] * x.value(m, k, true), magnitude += std::fabs(values[k] * x.value(m, k, true));
      // The largest blocks have values beyond float32, which only their products with small activations leave finite.
      if (first < 252) check(std::fabs(expected[m] - exact) <= 1e-6 * magnitude + 1e-40, "exponent " + std::to_string(first));
    }
    for (const Isa isa : tiers()) {
      check(multiply(cpu::kernels(isa), Type::MXFP4, row.data() + 17 * first, 1, x.view) == expected, std::string(cpu::isaName(isa)) + " exponent " + std::to_string(first));
      check(multiply(cpu::kernels(isa), Type::MXFP4, row.data() + 17 * first, 1, x.one(0))[0] == expected[0], std::string(cpu::isaName(isa)) + " alone, exponent " + std::to_string(first));
    }
  }
}};

const Test independence{"kernels: a result depends neither on the rows beside it nor on how weight rows are divided", [] {
  Random random(11);
  std::vector<Type> types(std::begin(Int8Types), std::end(Int8Types));
  types.insert(types.end(), std::begin(FloatTypes), std::end(FloatTypes));
  types.push_back(Type::NVFP4);
  for (const Isa isa : tiers()) {
    const Kernels& kernels = cpu::kernels(isa);
    for (const Type type : types) {
      const size_t block = quant::format(type).blockLength;
      const size_t length = block == 1 ? 32 * 21 : block == 32 ? 32 * 21 : 768, rowCount = 37, columns = 19;
      const std::vector<std::byte> weights = randomWeights(type, rowCount, length, random, false);
      const size_t rowBytes = quant::rowBytes(quant::format(type), length);
      const Rows x(kernels, randomValues(columns * length, random), columns);
      const std::vector<float> all = multiply(kernels, type, weights.data(), rowCount, x.view);
      for (const size_t some : {1, 2, 3, 4, 5, 7, 8, 9, 12, 16}) {
        cpu::Activations view = x.view;
        view.rows = some;
        const std::vector<float> fewer = multiply(kernels, type, weights.data(), rowCount, view);
        check(std::equal(fewer.begin(), fewer.end(), all.begin()), describe(isa, type, rowCount, length, some) + ": fewer activation rows change a result");
      }
      for (const size_t columnsHere : {size_t{1}, columns})
        for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 1}, {1, 1}, {3, 2}, {5, 16}, {7, 30}, {36, 1}}) {
          cpu::Activations view = x.view;
          view.rows = columnsHere;
          const std::vector<float> part = multiply(kernels, type, weights.data() + first * rowBytes, count, view);
          for (size_t m = 0; m < columnsHere; ++m)
            for (size_t r = 0; r < count; ++r)
              check(part[m * count + r] == all[m * rowCount + first + r], describe(isa, type, count, length, columnsHere) + ": dividing the weight rows changes a result");
        }
      for (size_t m = 0; m < columns; ++m) {
        const std::vector<float> alone = multiply(kernels, type, weights.data(), rowCount, x.one(m));
        check(std::equal(alone.begin(), alone.end(), all.begin() + ptrdiff_t(m * rowCount)), describe(isa, type, rowCount, length, 1) + ": alone differs from beside others");
      }
    }
  }
}};

const Test bounds{"kernels: products write nothing outside their rows", [] {
  Random random(5);
  for (const Isa isa : tiers())
    for (const Type type : {Type::Q4_1, Type::Q6_K, Type::F16})
      for (const size_t columns : {1, 9}) {
        const size_t length = 256, rowCount = 21, stride = 30;
        const std::vector<std::byte> weights = randomWeights(type, rowCount, length, random, false);
        const Rows x(cpu::kernels(isa), randomValues(columns * length, random), columns);
        std::vector<float> out(columns * stride, 42);
        cpu::kernels(isa).matmulRows(type, weights.data(), quant::rowBytes(quant::format(type), length), rowCount, x.view, out.data(), stride);
        for (size_t m = 0; m < columns; ++m)
          for (size_t r = 0; r < stride; ++r) check((out[m * stride + r] == 42) == (r >= rowCount), describe(isa, type, rowCount, length, columns));
      }
}};

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
  for (const Isa isa : tiers()) {
    const Rows got(cpu::kernels(isa), values, 1);
    check(got.q == expected.q && got.scale == expected.scale && got.sum16 == expected.sum16, cpu::isaName(isa));
  }
}};

const Test halves{"kernels: every half converts to float and back exactly", [] {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
  for (const Isa isa : tiers()) {
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
  for (const Isa isa : tiers()) {
    std::vector<uint16_t> got(values.size());
    cpu::kernels(isa).floatToHalf(values.data(), got.data(), values.size());
    check(got == expected, cpu::isaName(isa));
  }
}};

const Test vectors{"kernels: dot products, axpy, rmsNorm, siluMul and softmax equal double arithmetic for any length", [] {
  Random random(17);
  for (const Isa isa : tiers()) {
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
  for (const Isa isa : tiers()) {
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
    for (const Isa isa : tiers()) {
      cpu::kernels(isa).rmsNorm(x.data(), weight.data(), 1e-6f, got.data(), n);
      check(got == expected, cpu::isaName(isa));
    }
  }
}};

} // namespace
