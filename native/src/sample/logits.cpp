#include "sample/logits.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace mashbox::sample {
namespace {

constexpr float Infinity = std::numeric_limits<float>::infinity();

/// exp(x) for x ≤ 0 within 2 ulp, 0 below −87 and for NaN (Cephes' reduction and polynomial, branch-free).
inline float expNonPositive(float x) {
  const float clamped = x > -87.0f ? x : -87.0f;
  constexpr float Round = 12582912.0f; // 1.5 · 2^23: adding it rounds to an integer, which stands in the low mantissa bits
  const float shifted = clamped * 1.44269504f + Round;
  const float n = shifted - Round;
  const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const uint32_t scale = (std::bit_cast<uint32_t>(shifted) + 127) << 23;
  const float value = p * std::bit_cast<float>(scale);
  return x > -87.0f ? value : 0.0f;
}

float blockMaximum(const float* values, size_t count) {
  float lanes[8];
  std::fill_n(lanes, 8, -Infinity);
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
  for (; i < count; ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  return *std::max_element(lanes, lanes + 8);
}

float weighBlock(const float* __restrict logits, size_t count, float largest, float inverse, float* __restrict weights) {
  if (count == ScoreBlock)
    for (size_t i = 0; i < ScoreBlock; ++i) weights[i] = expNonPositive((logits[i] - largest) * inverse);
  else
    for (size_t i = 0; i < count; ++i) weights[i] = expNonPositive((logits[i] - largest) * inverse);
  float lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t lane = 0; lane < 8; ++lane) lanes[lane] += weights[i + lane];
  for (; i < count; ++i) lanes[0] += weights[i];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

bool before(const Candidate& a, const Candidate& b) { return a.before(b); }

void keepUpTo(std::vector<Candidate>& candidates, const Candidate& last) {
  std::erase_if(candidates, [&](const Candidate& c) { return last.before(c); });
}

} // namespace

void blockMaxima(std::span<const float> values, std::vector<float>& maxima) {
  maxima.resize((values.size() + ScoreBlock - 1) / ScoreBlock);
  for (size_t block = 0; block < maxima.size(); ++block) {
    const size_t begin = block * ScoreBlock;
    maxima[block] = blockMaximum(values.data() + begin, std::min(ScoreBlock, values.size() - begin));
  }
}

int32_t argmax(std::span<const float> values, std::span<const float> maxima) {
  const auto best = std::max_element(maxima.begin(), maxima.end());
  if (*best == -Infinity) return 0;
  const auto begin = values.begin() + (best - maxima.begin()) * static_cast<ptrdiff_t>(ScoreBlock);
  return static_cast<int32_t>(std::find(begin, values.end(), *best) - values.begin());
}

double softmaxWeights(std::span<const float> logits, float largest, float temperature, std::span<float> weights, std::vector<float>& blockSums) {
  blockSums.resize((logits.size() + ScoreBlock - 1) / ScoreBlock);
  const float inverse = std::min(1.0f / temperature, std::numeric_limits<float>::max());
  double total = 0;
  for (size_t block = 0; block < blockSums.size(); ++block) {
    const size_t begin = block * ScoreBlock, count = std::min(ScoreBlock, logits.size() - begin);
    if (largest == Infinity) {
      blockSums[block] = 0;
      for (size_t i = begin; i < begin + count; ++i) blockSums[block] += weights[i] = logits[i] == Infinity ? 1.0f : 0.0f;
    } else {
      blockSums[block] = weighBlock(logits.data() + begin, count, largest, inverse, weights.data() + begin);
    }
    total += blockSums[block];
  }
  return total;
}

void maskLogits(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  // Each value is written once and then, where it is one of the fewer, again.
  for (size_t begin = 0, word = 0; begin < values.size(); begin += 64, ++word) {
    const size_t end = std::min(begin + 64, values.size());
    const uint64_t allowed = word < mask.size() ? mask[word] : 0;
    const bool most = std::popcount(allowed) > 32;
    if (most) std::copy(values.begin() + begin, values.begin() + end, out.begin() + begin);
    else std::fill(out.begin() + begin, out.begin() + end, -Infinity);
    for (uint64_t bits = most ? ~allowed : allowed; bits != 0; bits &= bits - 1)
      if (const size_t i = begin + std::countr_zero(bits); i < end) out[i] = most ? -Infinity : values[i];
  }
}

void selectTopK(std::span<const float> logits, std::span<const float> maxima, size_t k, std::vector<Candidate>& out, std::vector<Candidate>& scratch) {
  out.clear();
  // The k-th largest block maximum is a lower bound of the k-th largest value: k blocks hold a value at least as large.
  float bound = -Infinity;
  if (k <= maxima.size()) {
    scratch.clear();
    for (const float maximum : maxima) scratch.push_back({maximum, 0});
    std::nth_element(scratch.begin(), scratch.begin() + static_cast<ptrdiff_t>(k - 1), scratch.end(), before);
    bound = scratch[k - 1].score;
  }
  for (size_t block = 0; block < maxima.size(); ++block) {
    if (maxima[block] < bound || maxima[block] == -Infinity) continue;
    const size_t end = std::min((block + 1) * ScoreBlock, logits.size());
    for (size_t i = block * ScoreBlock; i < end; ++i)
      if (logits[i] >= bound && logits[i] > -Infinity) out.push_back({logits[i], static_cast<int32_t>(i)});
  }
  if (out.size() <= k) return;
  scratch = out;
  const auto last = scratch.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(scratch.begin(), last, scratch.end(), before);
  keepUpTo(out, *last);
}

void keepNucleus(std::vector<Candidate>& candidates, double target, std::vector<Candidate>& scratch) {
  // Buckets of an eighth of an octave, heaviest first, say in which of them the nucleus ends.
  constexpr uint32_t One = 0x3F800000, Shift = 20;
  const auto bucketOf = [](const Candidate& c) { return (One - std::bit_cast<uint32_t>(std::min(c.score, 1.0f))) >> Shift; };
  std::array<double, (One >> Shift) + 1> buckets{};
  for (const auto& c : candidates) buckets[bucketOf(c)] += c.score;
  uint32_t bucket = 0;
  double kept = 0;
  while (bucket + 1 < buckets.size() && kept + buckets[bucket] < target) kept += buckets[bucket++];

  // Quickselect by weight inside that bucket: [begin, end) holds the last member, `kept` is the weight of all before begin.
  scratch.clear();
  for (const auto& c : candidates)
    if (bucketOf(c) == bucket) scratch.push_back(c);
  auto begin = scratch.begin(), end = scratch.end();
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, before);
    double upper = 0;
    for (auto c = begin; c != middle; ++c) upper += c->score;
    if (kept + upper >= target) {
      end = middle;
    } else {
      kept += upper;
      begin = middle;
    }
  }
  if (begin != end) keepUpTo(candidates, *begin);
}

} // namespace mashbox::sample
