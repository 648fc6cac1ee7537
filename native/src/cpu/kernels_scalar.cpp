#include "base/float16.hpp"
#include "cpu/int8_scalar.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace mashbox::cpu {
namespace {

constexpr size_t Lanes = 16;

float sumLanes(const float* lane) {
  float half[8];
  for (size_t i = 0; i < 8; ++i) half[i] = lane[i] + lane[i + 8];
  return ((half[0] + half[4]) + (half[2] + half[6])) + ((half[1] + half[5]) + (half[3] + half[7]));
}

float asFloat(float value) { return value; }
float asFloat(uint16_t value) { return mashbox::halfToFloat(value); }

template <class T> float dot(const float* a, const T* b, size_t n) {
  float lane[Lanes] = {};
  size_t k = 0;
  for (; k + Lanes <= n; k += Lanes)
    for (size_t i = 0; i < Lanes; ++i) lane[i] += a[k + i] * asFloat(b[k + i]);
  for (size_t i = 0; k + i < n; ++i) lane[i] += a[k + i] * asFloat(b[k + i]);
  return sumLanes(lane);
}

template <class T> void axpy(float a, const T* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] += a * asFloat(x[i]);
}

/// Adding 1.5·2^23 leaves the value, rounded to nearest even, in the low mantissa bits.
int32_t roundToInt(float value) { return (std::bit_cast<int32_t>(value + 12582912.0f) & 0x7fffff) - 0x400000; }

void quantizeRow(const float* x, size_t length, int8_t* q, float* scale, int16_t* sum16) {
  for (size_t b = 0; b < length / 32; ++b, x += 32, q += 32) {
    float amax = 0;
    for (size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[i]));
    const bool zero = !(amax > 1e-30f);
    const float inverse = zero ? 0 : 127.0f / amax;
    scale[b] = zero ? 0 : amax / 127.0f;
    for (size_t h = 0; h < 2; ++h) {
      int32_t sum = 0;
      for (size_t i = 16 * h; i < 16 * h + 16; ++i) {
        q[i] = int8_t(std::clamp(roundToInt(x[i] * inverse), -127, 127));
        sum += q[i];
      }
      sum16[2 * b + h] = int16_t(sum);
    }
  }
}

/// Any decodable row, multiplied in float.
void matmulFloat(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  auto* row = reinterpret_cast<float*>(threadScratch(x.length * sizeof(float)));
  for (size_t r = 0; r < rowCount; ++r) {
    dequantizeRow(type, weights + r * rowBytes, row, x.length);
    for (size_t m = 0; m < x.rows; ++m) out[m * outStride + r] = dot(x.f32 + m * x.length, row, x.length);
  }
}

void matmulRows(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  (usesInt8(type) ? scalar::matmulInt8 : matmulFloat)(type, weights, rowBytes, rowCount, x, out, outStride);
}

void rmsNorm(const float* x, const float* weight, float epsilon, float* out, size_t n) {
  double lane[Lanes] = {};
  for (size_t i = 0; i < n; ++i) lane[i % Lanes] += double(x[i]) * double(x[i]);
  double half[8];
  for (size_t i = 0; i < 8; ++i) half[i] = lane[i] + lane[i + 8];
  const double sum = ((half[0] + half[4]) + (half[2] + half[6])) + ((half[1] + half[5]) + (half[3] + half[7]));
  const float scale = 1.0f / std::sqrt(float(sum / double(n)) + epsilon);
  for (size_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void siluMul(const float* gate, const float* up, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void geluMul(const float* gate, const float* up, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const float x = gate[i];
    out[i] = 0.5f * x * (1.0f + std::tanh(0.79788456f * x * (1.0f + 0.044715f * x * x))) * up[i];
  }
}

void softcap(float* x, float cap, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = cap * std::tanh(x[i] / cap);
}

void softmax(float* x, size_t n) {
  float max = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < n; ++i) max = std::max(max, x[i]);
  if (max == -std::numeric_limits<float>::infinity()) return (void)std::fill_n(x, n, 0.0f);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - max);
  const float scale = float(1 / sum);
  for (size_t i = 0; i < n; ++i) x[i] *= scale;
}

void halfToFloat(const uint16_t* in, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = mashbox::halfToFloat(in[i]);
}

void floatToHalf(const float* in, uint16_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = mashbox::floatToHalf(in[i]);
}

} // namespace

const Kernels scalarKernels{
    Isa::Scalar, quantizeRow, matmulRows, dot<float>, dot<uint16_t>, axpy<float>, axpy<uint16_t>, rmsNorm, siluMul, geluMul, softcap, softmax, halfToFloat, floatToHalf,
};

} // namespace mashbox::cpu
