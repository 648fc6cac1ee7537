#if defined(__x86_64__)

#include "cpu/float_avx2.hpp"
#include "cpu/int8_avx2.hpp"
#include "cpu/simd_avx2.hpp"

namespace mashbox::cpu {
namespace avx2 {
namespace {

struct F32 {
  static __m256 load(const float* at) { return _mm256_loadu_ps(at); }
};

struct F16 {
  static __m256 load(const uint16_t* at) { return _mm256_cvtph_ps(load128(at)); }
};

/// A padded copy of the last, incomplete eight elements.
template <class T> struct Tail {
  alignas(32) T values[8];
  Tail(const T* at, size_t count, T fill) {
    for (T& value : values) value = fill;
    std::memcpy(values, at, count * sizeof(T));
  }
};

float maxLanes(__m256 x) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

int32_t sumLanes(__m256i x) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  s = _mm_add_epi32(s, _mm_unpackhi_epi64(s, s));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 1)));
}

void quantizeRow(const float* x, size_t length, int8_t* q, float* scale, int16_t* sum16) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MAX));
  const __m256i most = _mm256_set1_epi32(127), least = _mm256_set1_epi32(-127);
  for (size_t b = 0; b < length / 32; ++b, x += 32, q += 32) {
    __m256 maxima = _mm256_setzero_ps();
    for (int i = 0; i < 4; ++i) maxima = _mm256_max_ps(_mm256_and_ps(_mm256_loadu_ps(x + 8 * i), magnitude), maxima);
    const float amax = maxLanes(maxima);
    const bool zero = !(amax > 1e-30f);
    const __m256 inverse = _mm256_set1_ps(zero ? 0 : 127.0f / amax);
    scale[b] = zero ? 0 : amax / 127.0f;
    for (int h = 0; h < 2; ++h) {
      __m256i code[2];
      for (int i = 0; i < 2; ++i) {
        const __m256i rounded = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16 * h + 8 * i), inverse));
        code[i] = _mm256_max_epi32(_mm256_min_epi32(rounded, most), least);
      }
      sum16[2 * b + h] = int16_t(sumLanes(_mm256_add_epi32(code[0], code[1])));
      const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(code[0], code[1]), 0b11011000);
      const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16 * h), bytes);
    }
  }
}

void matmulRows(Type type, const std::byte* weights, size_t rowBytes, size_t rowCount, const Activations& x, float* out, size_t outStride) {
  (usesInt8(type) ? matmulInt8 : matmulFloat)(type, weights, rowBytes, rowCount, x, out, outStride);
}

template <class Format, class T> float dot(const float* a, const T* b, size_t n) {
  __m256 acc[4];
  for (__m256& x : acc) x = _mm256_setzero_ps();
  size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int j = 0; j < 4; ++j) acc[j] = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8 * j), Format::load(b + i + 8 * j), acc[j]);
  for (; i + 8 <= n; i += 8) acc[0] = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), Format::load(b + i), acc[0]);
  if (i < n) {
    const Tail<float> x(a + i, n - i, 0);
    const Tail<T> y(b + i, n - i, 0);
    acc[1] = _mm256_fmadd_ps(_mm256_load_ps(x.values), Format::load(y.values), acc[1]);
  }
  return sumLanes(_mm256_add_ps(_mm256_add_ps(acc[0], acc[2]), _mm256_add_ps(acc[1], acc[3])));
}

template <class Format, class T> void axpy(float a, const T* x, float* y, size_t n) {
  const __m256 factor = _mm256_set1_ps(a);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_fmadd_ps(factor, Format::load(x + i), _mm256_loadu_ps(y + i)));
  if (i < n) {
    const Tail<T> v(x + i, n - i, 0);
    Tail<float> sum(y + i, n - i, 0);
    _mm256_store_ps(sum.values, _mm256_fmadd_ps(factor, Format::load(v.values), _mm256_load_ps(sum.values)));
    std::memcpy(y + i, sum.values, (n - i) * sizeof(float));
  }
}

/// out[i] = body(a[i], b[i]), eight at a time.
template <class Body> void transform(const float* a, const float* b, float* out, size_t n, const Body& body) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, body(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
  if (i < n) {
    Tail<float> x(a + i, n - i, 0);
    const Tail<float> y(b + i, n - i, 0);
    _mm256_store_ps(x.values, body(_mm256_load_ps(x.values), _mm256_load_ps(y.values)));
    std::memcpy(out + i, x.values, (n - i) * sizeof(float));
  }
}

void rmsNorm(const float* x, const float* weight, float epsilon, float* out, size_t n) {
  __m256d acc[4];
  for (__m256d& a : acc) a = _mm256_setzero_pd();
  const auto square = [&](const float* at, int half) {
    for (int j = 0; j < 2; ++j) {
      const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(at + 4 * j));
      acc[2 * half + j] = _mm256_fmadd_pd(v, v, acc[2 * half + j]);
    }
  };
  size_t i = 0;
  for (; i + 8 <= n; i += 8) square(x + i, int(i / 8 % 2));
  if (i < n) square(Tail<float>(x + i, n - i, 0).values, int(i / 8 % 2));
  const float mean = float(sumLanes(acc) / double(n));
  const __m256 scale = _mm256_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + epsilon))));
  transform(x, weight, out, n, [&](__m256 v, __m256 w) { return _mm256_mul_ps(_mm256_mul_ps(v, scale), w); });
}

void siluMul(const float* gate, const float* up, float* out, size_t n) {
  transform(gate, up, out, n, [](__m256 g, __m256 u) {
    const __m256 negated = _mm256_xor_ps(g, _mm256_set1_ps(-0.0f));
    return _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1), exp(negated))), u);
  });
}

/// 0.5 (1 + tanh u) is the logistic function of 2u.
void geluMul(const float* gate, const float* up, float* out, size_t n) {
  transform(gate, up, out, n, [](__m256 g, __m256 u) {
    const __m256 cubic = _mm256_fmadd_ps(_mm256_mul_ps(g, g), _mm256_set1_ps(0.044715f), _mm256_set1_ps(1));
    const __m256 negated = _mm256_mul_ps(_mm256_mul_ps(g, _mm256_set1_ps(-1.59576912f)), cubic);
    return _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1), exp(negated))), u);
  });
}

/// tanh u is 1 − 2 / (e^2u + 1).
void softcap(float* x, float cap, size_t n) {
  const __m256 scale = _mm256_set1_ps(2 / cap);
  transform(x, x, x, n, [&](__m256 value, __m256) {
    const __m256 fraction = _mm256_div_ps(_mm256_set1_ps(2), _mm256_add_ps(exp(_mm256_mul_ps(value, scale)), _mm256_set1_ps(1)));
    return _mm256_mul_ps(_mm256_set1_ps(cap), _mm256_sub_ps(_mm256_set1_ps(1), fraction));
  });
}

void softmax(float* x, size_t n) {
  constexpr float Lowest = -__builtin_inff();
  __m256 maxima = _mm256_set1_ps(Lowest);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) maxima = _mm256_max_ps(maxima, _mm256_loadu_ps(x + i));
  if (i < n) maxima = _mm256_max_ps(maxima, _mm256_load_ps(Tail<float>(x + i, n - i, Lowest).values));
  const float max = maxLanes(maxima);
  if (max == Lowest) {
    std::memset(x, 0, n * sizeof *x);
    return;
  }
  __m256d acc[4];
  for (__m256d& a : acc) a = _mm256_setzero_pd();
  const auto exponential = [&](__m256 v) {
    const __m256 e = exp(_mm256_sub_ps(v, _mm256_set1_ps(max)));
    acc[0] = _mm256_add_pd(acc[0], _mm256_cvtps_pd(_mm256_castps256_ps128(e)));
    acc[1] = _mm256_add_pd(acc[1], _mm256_cvtps_pd(_mm256_extractf128_ps(e, 1)));
    return e;
  };
  for (i = 0; i + 8 <= n; i += 8) _mm256_storeu_ps(x + i, exponential(_mm256_loadu_ps(x + i)));
  if (i < n) {
    Tail<float> rest(x + i, n - i, Lowest);
    _mm256_store_ps(rest.values, exponential(_mm256_load_ps(rest.values)));
    std::memcpy(x + i, rest.values, (n - i) * sizeof *x);
  }
  const __m256 scale = _mm256_set1_ps(float(1 / sumLanes(acc)));
  transform(x, x, x, n, [&](__m256 v, __m256) { return _mm256_mul_ps(v, scale); });
}

void halfToFloat(const uint16_t* in, float* out, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(out + i, F16::load(in + i));
  if (i < n) {
    alignas(32) float rest[8];
    _mm256_store_ps(rest, F16::load(Tail<uint16_t>(in + i, n - i, 0).values));
    std::memcpy(out + i, rest, (n - i) * sizeof *out);
  }
}

void floatToHalf(const float* in, uint16_t* out, size_t n) {
  const auto convert = [](__m256 v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); };
  size_t i = 0;
  for (; i + 8 <= n; i += 8) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), convert(_mm256_loadu_ps(in + i)));
  if (i < n) {
    alignas(16) uint16_t rest[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(rest), convert(_mm256_load_ps(Tail<float>(in + i, n - i, 0).values)));
    std::memcpy(out + i, rest, (n - i) * sizeof *out);
  }
}

} // namespace
} // namespace avx2

const Kernels avx2Kernels{
    Isa::Avx2,
    avx2::quantizeRow,
    avx2::matmulRows,
    avx2::dot<avx2::F32, float>,
    avx2::dot<avx2::F16, uint16_t>,
    avx2::axpy<avx2::F32, float>,
    avx2::axpy<avx2::F16, uint16_t>,
    avx2::rmsNorm,
    avx2::siluMul,
    avx2::geluMul,
    avx2::softcap,
    avx2::softmax,
    avx2::halfToFloat,
    avx2::floatToHalf,
};

} // namespace mashbox::cpu

#endif
