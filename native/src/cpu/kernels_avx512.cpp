#if defined(__x86_64__)

#include "cpu/float_avx512.hpp"
#include "cpu/int8_avx512.hpp"
#include "cpu/simd_avx512.hpp"

namespace mashbox::cpu {
namespace avx512 {
namespace {

struct F32 {
  static __m512 load(const float* at) { return _mm512_loadu_ps(at); }
  static __m512 load(const float* at, __mmask16 lanes) { return _mm512_maskz_loadu_ps(lanes, at); }
};

struct F16 {
  static __m512 load(const uint16_t* at) { return _mm512_cvtph_ps(load256(at)); }
  static __m512 load(const uint16_t* at, __mmask16 lanes) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, at)); }
};

void quantizeRow(const float* x, size_t length, int8_t* q, float* scale, int16_t* sum16) {
  for (size_t b = 0; b < length / 32; ++b, x += 32, q += 32) {
    const __m512 v[2] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
    const float amax = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(v[0]), _mm512_abs_ps(v[1])));
    const bool zero = !(amax > 1e-30f);
    const __m512 inverse = _mm512_set1_ps(zero ? 0 : 127.0f / amax);
    scale[b] = zero ? 0 : amax / 127.0f;
    for (int h = 0; h < 2; ++h) {
      const __m512i rounded = _mm512_cvtps_epi32(_mm512_mul_ps(v[h], inverse));
      const __m512i code = _mm512_max_epi32(_mm512_min_epi32(rounded, _mm512_set1_epi32(127)), _mm512_set1_epi32(-127));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16 * h), _mm512_cvtepi32_epi8(code));
      sum16[2 * b + h] = int16_t(_mm512_reduce_add_epi32(code));
    }
  }
}

void matmulRows(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  (usesInt8(type) ? matmulInt8 : matmulFloat)(type, weights, rowBytes, rowCount, x, out, outStride);
}

template <class Format, class T> float dot(const float* a, const T* b, size_t n) {
  __m512 acc[4];
  for (__m512& x : acc) x = _mm512_setzero_ps();
  size_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (int j = 0; j < 4; ++j) acc[j] = _mm512_fmadd_ps(_mm512_loadu_ps(a + i + 16 * j), Format::load(b + i + 16 * j), acc[j]);
  for (; i + 16 <= n; i += 16) acc[0] = _mm512_fmadd_ps(_mm512_loadu_ps(a + i), Format::load(b + i), acc[0]);
  if (i < n) {
    const __mmask16 lanes = firstLanes(n - i);
    acc[1] = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, a + i), Format::load(b + i, lanes), acc[1]);
  }
  return sumLanes(_mm512_add_ps(_mm512_add_ps(acc[0], acc[2]), _mm512_add_ps(acc[1], acc[3])));
}

template <class Format, class T> void axpy(float a, const T* x, float* y, size_t n) {
  const __m512 factor = _mm512_set1_ps(a);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, _mm512_fmadd_ps(factor, Format::load(x + i), _mm512_loadu_ps(y + i)));
  if (i < n) {
    const __mmask16 lanes = firstLanes(n - i);
    _mm512_mask_storeu_ps(y + i, lanes, _mm512_fmadd_ps(factor, Format::load(x + i, lanes), _mm512_maskz_loadu_ps(lanes, y + i)));
  }
}

/// Calls `body(i, lanes)` for every sixteen elements.
template <class Body> void forEach16(size_t n, const Body& body) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, __mmask16(0xffff));
  if (i < n) body(i, firstLanes(n - i));
}

void rmsNorm(const float* x, const float* weight, float epsilon, float* out, size_t n) {
  __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes, x + i);
    const __m512d a = _mm512_cvtps_pd(_mm512_castps512_ps256(v)), b = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    low = _mm512_fmadd_pd(a, a, low);
    high = _mm512_fmadd_pd(b, b, high);
  });
  const float mean = float(sumLanes(low, high) / double(n));
  const __m512 scale = _mm512_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + epsilon))));
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale);
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(lanes, weight + i)));
  });
}

void siluMul(const float* gate, const float* up, float* out, size_t n) {
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    const __m512 g = _mm512_maskz_loadu_ps(lanes, gate + i);
    const __m512 negated = _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(g), _mm512_set1_epi32(INT32_MIN)));
    const __m512 silu = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1), exp(negated)));
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(lanes, up + i)));
  });
}

/// 0.5 (1 + tanh u) is the logistic function of 2u.
void geluMul(const float* gate, const float* up, float* out, size_t n) {
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    const __m512 g = _mm512_maskz_loadu_ps(lanes, gate + i);
    const __m512 cubic = _mm512_fmadd_ps(_mm512_mul_ps(g, g), _mm512_set1_ps(0.044715f), _mm512_set1_ps(1));
    const __m512 negated = _mm512_mul_ps(_mm512_mul_ps(g, _mm512_set1_ps(-1.59576912f)), cubic);
    const __m512 gelu = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1), exp(negated)));
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_mul_ps(gelu, _mm512_maskz_loadu_ps(lanes, up + i)));
  });
}

/// tanh u is 1 − 2 / (e^2u + 1).
void softcap(float* x, float cap, size_t n) {
  const __m512 scale = _mm512_set1_ps(2 / cap);
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    const __m512 power = exp(_mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale));
    const __m512 fraction = _mm512_div_ps(_mm512_set1_ps(2), _mm512_add_ps(power, _mm512_set1_ps(1)));
    _mm512_mask_storeu_ps(x + i, lanes, _mm512_mul_ps(_mm512_set1_ps(cap), _mm512_sub_ps(_mm512_set1_ps(1), fraction)));
  });
}

void softmax(float* x, size_t n) {
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 maxima = lowest;
  forEach16(n, [&](size_t i, __mmask16 lanes) { maxima = _mm512_max_ps(maxima, _mm512_mask_loadu_ps(lowest, lanes, x + i)); });
  const float max = _mm512_reduce_max_ps(maxima);
  if (max == -__builtin_inff()) {
    forEach16(n, [&](size_t i, __mmask16 lanes) { _mm512_mask_storeu_ps(x + i, lanes, _mm512_setzero_ps()); });
    return;
  }
  __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    const __m512 e = exp(_mm512_sub_ps(_mm512_mask_loadu_ps(lowest, lanes, x + i), _mm512_set1_ps(max)));
    _mm512_mask_storeu_ps(x + i, lanes, e);
    low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(e)));
    high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(e, 1)));
  });
  const __m512 scale = _mm512_set1_ps(float(1 / sumLanes(low, high)));
  forEach16(n, [&](size_t i, __mmask16 lanes) { _mm512_mask_storeu_ps(x + i, lanes, _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, x + i), scale)); });
}

void halfToFloat(const uint16_t* in, float* out, size_t n) {
  forEach16(n, [&](size_t i, __mmask16 lanes) { _mm512_mask_storeu_ps(out + i, lanes, F16::load(in + i, lanes)); });
}

void floatToHalf(const float* in, uint16_t* out, size_t n) {
  forEach16(n, [&](size_t i, __mmask16 lanes) {
    _mm256_mask_storeu_epi16(out + i, lanes, _mm512_cvtps_ph(_mm512_maskz_loadu_ps(lanes, in + i), _MM_FROUND_TO_NEAREST_INT));
  });
}

} // namespace
} // namespace avx512

const Kernels avx512Kernels{
    Isa::Avx512,
    avx512::quantizeRow,
    avx512::matmulRows,
    avx512::dot<avx512::F32, float>,
    avx512::dot<avx512::F16, uint16_t>,
    avx512::axpy<avx512::F32, float>,
    avx512::axpy<avx512::F16, uint16_t>,
    avx512::rmsNorm,
    avx512::siluMul,
    avx512::geluMul,
    avx512::softcap,
    avx512::softmax,
    avx512::halfToFloat,
    avx512::floatToHalf,
};

} // namespace mashbox::cpu

#endif
