#include "model_session.hpp"
#include "random_rows.hpp"
#include "test.hpp"

#include "base/float16.hpp"
#include "cpu/kernels.hpp"
#include "quant/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace mashbox {
namespace {

using cpu::Isa;
using cpu::Kernels;
using quant::Type;
using test::availableTiers;
using test::check;
using test::Random;
using test::randomValues;
using test::Rows;
using test::Test;

constexpr Type Int8Types[] = {Type::Q4_0, Type::Q4_1, Type::Q5_0, Type::Q5_1, Type::Q8_0, Type::Q2_K, Type::Q3_K, Type::Q4_K,
                              Type::Q5_K, Type::Q6_K, Type::IQ4_NL, Type::IQ4_XS, Type::MXFP4, Type::NVFP4};
constexpr Type FloatTypes[] = {Type::F32, Type::F16, Type::BF16};

/// Where a block has its scales and minimums, as halves.
std::vector<size_t> halvesOf(Type type) {
  switch (type) {
  case Type::Q4_1:
  case Type::Q5_1:
  case Type::Q4_K:
  case Type::Q5_K: return {0, 2};
  case Type::Q2_K: return {80, 82};
  case Type::Q3_K: return {108};
  case Type::Q6_K: return {208};
  case Type::MXFP4:
  case Type::NVFP4: return {};
  default: return {0};
  }
}

/// Blocks of random bytes, with moderate scales of either sign where those are halves.
std::vector<std::byte> randomBlocks(Type type, size_t rows, size_t length, Random& random) {
  const quant::Format& format = quant::format(type);
  std::vector<std::byte> bytes(rows * quant::rowBytes(format, length));
  std::uniform_int_distribution<int> anyByte(0, 255);
  for (std::byte& byte : bytes) byte = std::byte(anyByte(random));
  const std::vector<size_t> halves = halvesOf(type);
  for (size_t at = 0; at < bytes.size(); at += format.blockBytes) {
    if (type == Type::MXFP4) bytes[at] = std::byte(120 + anyByte(random) % 10);
    for (size_t i = 0; type == Type::NVFP4 && i < 4; ++i) bytes[at + i] = std::byte(anyByte(random) % 100);
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
  for (const Isa isa : availableTiers()) outs.push_back(multiply(cpu::kernels(isa), type, weights.data(), shape.rowCount, x.view));
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
              describe(availableTiers()[i], type, shape.rowCount, shape.length, shape.columns) + ": " + std::to_string(got) + " for " + std::to_string(exact));
        if (int8) check(got == outs[0][m * shape.rowCount + r], describe(availableTiers()[i], type, shape.rowCount, shape.length, shape.columns) + " differs from scalar");
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

const Test limits{"kernels: the largest codes do not overflow", [] {
  for (const Type type : Int8Types) {
    const size_t length = 512, rowCount = 3, columns = 9;
    for (const uint8_t fill : {0x00, 0x7f, 0x80, 0xff}) {
      std::vector<std::byte> weights(rowCount * quant::rowBytes(quant::format(type), length), std::byte{fill});
      const quant::Format& format = quant::format(type);
      const uint16_t oneAndMinusTwo[] = {0x3c00, 0xc000};
      const std::vector<size_t> halves = halvesOf(type);
      for (size_t at = 0; at < weights.size(); at += format.blockBytes) {
        std::byte* const block = weights.data() + at;
        if (type == Type::MXFP4) *block = std::byte{127};
        if (type == Type::NVFP4) std::fill_n(block, 4, std::byte{0x7e});
        for (size_t i = 0; i < halves.size(); ++i) std::memcpy(block + halves[i], &oneAndMinusTwo[i], 2);
      }
      for (const float sign : {1.0f, -1.0f, 0.0f}) {
        Rows x(cpu::kernels(Isa::Scalar), std::vector<float>(columns * length, sign), columns);
        std::vector<float> row(length);
        quant::dequantize(type, weights.data(), row);
        double exact = 0, magnitude = 0;
        for (size_t k = 0; k < length; ++k) exact += row[k] * x.value(0, k, true), magnitude += std::fabs(row[k]);
        const std::vector<float> scalar = multiply(cpu::kernels(Isa::Scalar), type, weights.data(), rowCount, x.view);
        for (const Isa isa : availableTiers()) {
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
    for (const Isa isa : availableTiers()) {
      check(multiply(cpu::kernels(isa), Type::MXFP4, row.data() + 17 * first, 1, x.view) == expected, std::string(cpu::isaName(isa)) + " exponent " + std::to_string(first));
      check(multiply(cpu::kernels(isa), Type::MXFP4, row.data() + 17 * first, 1, x.one(0))[0] == expected[0], std::string(cpu::isaName(isa)) + " alone, exponent " + std::to_string(first));
    }
  }
}};

const Test quarterScales{"kernels: NVFP4 blocks of every scale are the same in every tier", [] {
  Random random(37);
  const size_t length = 64, columns = 6;
  for (size_t byte = 0; byte < 256; ++byte) {
    std::vector<std::byte> row = randomBlocks(Type::NVFP4, 1, length, random);
    for (size_t i = 0; i < 4; ++i) row[i] = std::byte((byte + 31 * i) % 256);
    const Rows x(cpu::kernels(Isa::Scalar), randomValues(columns * length, random), columns);
    std::vector<float> values(length);
    quant::dequantize(Type::NVFP4, row.data(), values);
    const std::vector<float> expected = multiply(cpu::kernels(Isa::Scalar), Type::NVFP4, row.data(), 1, x.view);
    for (size_t m = 0; m < columns; ++m) {
      double exact = 0, magnitude = 0;
      for (size_t k = 0; k < length; ++k) exact += values[k] * x.value(m, k, true), magnitude += std::fabs(values[k] * x.value(m, k, true));
      check(std::fabs(expected[m] - exact) <= 1e-6 * magnitude + 1e-30, "scale " + std::to_string(byte));
    }
    for (const Isa isa : availableTiers()) {
      check(multiply(cpu::kernels(isa), Type::NVFP4, row.data(), 1, x.view) == expected, std::string(cpu::isaName(isa)) + " scale " + std::to_string(byte));
      check(multiply(cpu::kernels(isa), Type::NVFP4, row.data(), 1, x.one(0))[0] == expected[0], std::string(cpu::isaName(isa)) + " alone, scale " + std::to_string(byte));
    }
  }
}};

const Test independence{"kernels: a result depends neither on the rows beside it nor on how weight rows are divided", [] {
  Random random(11);
  std::vector<Type> types(std::begin(Int8Types), std::end(Int8Types));
  types.insert(types.end(), std::begin(FloatTypes), std::end(FloatTypes));
  for (const Isa isa : availableTiers()) {
    const Kernels& kernels = cpu::kernels(isa);
    for (const Type type : types) {
      const size_t block = quant::format(type).blockLength;
      const size_t length = block == 256 ? 768 : block == 64 ? 64 * 11 : 32 * 21, rowCount = 37, columns = 19;
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
  for (const Isa isa : availableTiers())
    for (const Type type : {Type::Q4_1, Type::Q2_K, Type::Q6_K, Type::NVFP4, Type::F16})
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

} // namespace
} // namespace mashbox
