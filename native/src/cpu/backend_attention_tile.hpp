#pragma once

#include "cpu/backend_attention.hpp"

/// Attention kernels over a tier's vectors `S`: Width, MaxQueries, V, zero, set, load (float or uint16_t), store, fma, mul, max,
/// exp, sum, largest. `S` lives in an unnamed namespace of the tier's file, and so does every instance of these templates.
namespace mashbox::cpu::attention {

inline constexpr size_t Tokens = kv::BlockTokens;

template <class S, class Element, size_t Count>
void scoresOf(const float* const* queries, const Element* keys, size_t length, float* scores) {
  constexpr size_t Parts = Tokens / S::Width;
  typename S::V sums[Count][Parts];
  for (auto& row : sums)
    for (auto& sum : row) sum = S::zero();
  for (size_t d = 0; d < length; ++d) {
    typename S::V key[Parts];
    for (size_t p = 0; p < Parts; ++p) key[p] = S::load(keys + d * Tokens + p * S::Width);
    for (size_t i = 0; i < Count; ++i) {
      const auto query = S::set(queries[i][d]);
      for (size_t p = 0; p < Parts; ++p) sums[i][p] = S::fma(query, key[p], sums[i][p]);
    }
  }
  for (size_t i = 0; i < Count; ++i)
    for (size_t p = 0; p < Parts; ++p) S::store(scores + i * Tokens + p * S::Width, sums[i][p]);
}

template <class S, class Element, size_t Count, size_t Parts>
void accumulatePart(const float* weights, size_t tokens, const Element* values, size_t stride, float* const* sums, size_t at) {
  typename S::V sum[Count][Parts];
  for (size_t i = 0; i < Count; ++i)
    for (size_t p = 0; p < Parts; ++p) sum[i][p] = S::load(sums[i] + at + p * S::Width);
  for (size_t t = 0; t < tokens; ++t) {
    typename S::V value[Parts];
    for (size_t p = 0; p < Parts; ++p) value[p] = S::load(values + t * stride + at + p * S::Width);
    for (size_t i = 0; i < Count; ++i) {
      const auto weight = S::set(weights[i * Tokens + t]);
      for (size_t p = 0; p < Parts; ++p) sum[i][p] = S::fma(weight, value[p], sum[i][p]);
    }
  }
  for (size_t i = 0; i < Count; ++i)
    for (size_t p = 0; p < Parts; ++p) S::store(sums[i] + at + p * S::Width, sum[i][p]);
}

template <class S, class Element, size_t Count>
void accumulateOf(const float* weights, size_t tokens, const Element* values, size_t stride, float* const* sums) {
  constexpr size_t Wide = 4;
  size_t at = 0;
  for (; at + Wide * S::Width <= stride; at += Wide * S::Width)
    accumulatePart<S, Element, Count, Wide>(weights, tokens, values, stride, sums, at);
  for (; at < stride; at += S::Width) accumulatePart<S, Element, Count, 1>(weights, tokens, values, stride, sums, at);
}

/// Calls `Body::template run<n>(first)` for groups of at most `S::MaxQueries` of `count` queries.
template <class S, class Body> void inGroups(size_t count, const Body& body) {
  size_t first = 0;
  for (; first + S::MaxQueries <= count; first += S::MaxQueries) body.template run<S::MaxQueries>(first);
  switch (count - first) {
  case 1: body.template run<1>(first); break;
  case 2: body.template run<2>(first); break;
  case 3: body.template run<3>(first); break;
  default: break;
  }
}

template <class S, class Element> struct ScoresBody {
  const float* const* queries;
  const Element* keys;
  size_t length;
  float* out;
  template <size_t Count> void run(size_t first) const { scoresOf<S, Element, Count>(queries + first, keys, length, out + first * Tokens); }
};

template <class S, class Element> struct AccumulateBody {
  const float* weights;
  size_t tokens;
  const Element* values;
  size_t stride;
  float* const* sums;
  template <size_t Count> void run(size_t first) const {
    accumulateOf<S, Element, Count>(weights + first * Tokens, tokens, values, stride, sums + first);
  }
};

template <class S, class Element> struct Tile {
  static void scores(const float* const* queries, size_t count, const void* keys, size_t length, float* out) {
    inGroups<S>(count, ScoresBody<S, Element>{queries, static_cast<const Element*>(keys), length, out});
  }

  static float weigh(float* scores, size_t first, size_t tokens, float scale, float* max) {
    for (size_t t = 0; t < first; ++t) scores[t] = -__builtin_inff();
    for (size_t t = tokens; t < Tokens; ++t) scores[t] = -__builtin_inff();
    typename S::V scaled[Tokens / S::Width];
    auto largest = S::set(*max);
    for (size_t p = 0; p < Tokens / S::Width; ++p) {
      scaled[p] = S::mul(S::load(scores + p * S::Width), S::set(scale));
      largest = S::max(scaled[p], largest);
    }
    *max = S::largest(largest);
    auto sum = S::zero();
    for (size_t p = 0; p < Tokens / S::Width; ++p) {
      const auto weight = S::exp(S::sub(scaled[p], S::set(*max)));
      S::store(scores + p * S::Width, weight);
    }
    for (size_t t = 0; t < first; ++t) scores[t] = 0;
    for (size_t t = tokens; t < Tokens; ++t) scores[t] = 0;
    for (size_t p = 0; p < Tokens / S::Width; ++p) sum = S::add(sum, S::load(scores + p * S::Width));
    return S::sum(sum);
  }

  static void accumulate(const float* weights, size_t count, size_t tokens, const void* values, size_t stride, float* const* sums) {
    inGroups<S>(count, AccumulateBody<S, Element>{weights, tokens, static_cast<const Element*>(values), stride, sums});
  }
};

template <class S, class Element> inline constexpr AttentionKernels kernelsOf = {Tile<S, Element>::scores, Tile<S, Element>::weigh, Tile<S, Element>::accumulate};

} // namespace mashbox::cpu::attention
