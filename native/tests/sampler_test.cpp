#include "sample/logits.hpp"
#include "sample/philox.hpp"
#include "sample/sampler.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>

namespace {

using namespace mashbox::sample;
using mashbox::test::check;
using mashbox::test::Test;

constexpr float Infinity = std::numeric_limits<float>::infinity();
constexpr float NaN = std::numeric_limits<float>::quiet_NaN();

/// The sampling chain, written for clarity in double: full sorts, no shortcuts.
int32_t reference(const Sampling& s, std::vector<double> logits, const std::vector<int32_t>& history, uint64_t index) {
  const size_t window = s.repetitionWindow == 0 ? history.size() : std::min<size_t>(s.repetitionWindow, history.size());
  std::map<int32_t, int> counts;
  for (size_t i = history.size() - window; i < history.size(); ++i) ++counts[history[i]];
  for (const auto& [token, count] : counts) {
    double& x = logits[static_cast<size_t>(token)];
    x = x > 0 ? x / s.repetitionPenalty : x * s.repetitionPenalty;
    x -= double{s.frequencyPenalty} * count + s.presencePenalty;
  }
  for (const auto& [token, bias] : s.logitBias) logits[static_cast<size_t>(token)] += bias;

  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int32_t token) { return logits[static_cast<size_t>(token)]; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return at(a) > at(b); });
  if (s.temperature == 0) return order[0];
  if (s.topK > 0 && s.topK < order.size()) order.resize(s.topK);
  const double largest = at(order[0]);
  std::map<int32_t, double> weights;
  double total = 0;
  for (const int32_t token : order) total += weights[token] = std::exp((at(token) - largest) / s.temperature);
  if (s.topP < 1) {
    size_t kept = 0;
    double cumulative = 0;
    do cumulative += weights[order[kept++]];
    while (cumulative < s.topP * total && kept < order.size());
    order.resize(kept);
  }
  std::erase_if(order, [&](int32_t token) { return weights[token] < s.minP; });
  std::sort(order.begin(), order.end());
  total = 0;
  for (const int32_t token : order) total += weights[token];
  double rest = uniform(s.seed, index) * total;
  for (const int32_t token : order) {
    if (rest < weights[token]) return token;
    rest -= weights[token];
  }
  return order.back();
}

std::vector<float> randomLogits(std::mt19937& random, size_t size, float deviation) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(size);
  for (float& x : logits) x = normal(random);
  return logits;
}

std::vector<float> log(std::vector<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

/// How often each token of `logits` is drawn at indices [0, draws).
std::vector<int> histogram(const Sampling& sampling, const std::vector<float>& logits, int draws) {
  Sampler sampler(sampling);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(sampler.sample(logits, {}, static_cast<uint64_t>(i)))];
  return counts;
}

double chiSquare(const std::vector<int>& counts, const std::vector<double>& probabilities, int draws) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * draws;
    if (expected == 0) check(counts[i] == 0, "token " + std::to_string(i) + " has no probability");
    else sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

int32_t once(Sampling sampling, const std::vector<float>& logits, const std::vector<int32_t>& history = {}, uint64_t index = 0) {
  return Sampler(std::move(sampling)).sample(logits, history, index);
}

const Test philoxVectors{"sampler: philox gives the known answers of Random123", [] {
  using Words = std::array<uint32_t, 4>;
  check(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, "zeros");
  check(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, "ones");
  check(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
      Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}, "digits of pi");
}};

const Test uniformIsUniform{"sampler: uniform numbers fill [0, 1) evenly over indices and over seeds", [] {
  for (const bool bySeed : {false, true}) {
    std::vector<int> buckets(100);
    for (uint64_t i = 0; i < 100'000; ++i) {
      const double u = bySeed ? uniform(i, 7) : uniform(7, i);
      check(u >= 0 && u < 1);
      ++buckets[static_cast<size_t>(u * 100)];
    }
    // 99 degrees of freedom: 148.2 is the 99.9th percentile.
    check(chiSquare(buckets, std::vector<double>(100, 0.01), 100'000) < 148.2);
  }
  check(uniform(1, uint64_t{1} << 32) != uniform(1, 0), "the upper half of the index counts");
  check(uniform(uint64_t{1} << 32, 1) != uniform(0, 1), "the upper half of the seed counts");
}};

const Test greedy{"sampler: temperature 0 takes the largest logit, the first among equals", [] {
  check(once({}, {1, 5, 3}) == 1);
  check(once({}, {5, 1, 5, 5}) == 0);
  std::vector<float> logits(1000, -2);
  logits[37] = logits[998] = 4;
  check(once({}, logits) == 37);
  logits[999] = 4.5f;
  check(once({}, logits) == 999);
}};

const Test hostileLogits{"sampler: NaN and infinite logits never draw what has no probability", [] {
  for (const float temperature : {0.0f, 1.0f})
    for (const uint32_t topK : {0u, 2u, 40u})
      for (const float topP : {1.0f, 0.9f}) {
        const Sampling s{.temperature = temperature, .topK = topK, .topP = topP};
        check(once(s, {NaN, NaN, -3, NaN}) == 2, "the only number");
        check(once(s, {NaN, -Infinity, NaN}) == 0, "nothing to draw from");
        check(once(s, {-Infinity, -Infinity, -90, -Infinity}) == 2, "one finite logit");
        check(once(s, {0, NaN, Infinity, 3}) == 2, "plus infinity wins");
        std::vector<float> logits(100, NaN);
        logits[64] = 1;
        check(once(s, logits) == 64);
      }
  check(once({.temperature = 1}, {}) == 0, "no logits at all");
  const auto counts = histogram({.temperature = 1}, {Infinity, 3, Infinity, NaN}, 2000);
  check(counts[0] > 850 && counts[2] > 850 && counts[0] + counts[2] == 2000, "several infinities share the draws");
  check(once({.temperature = 1e-38f}, {1, 3, 2}) == 1 && once({.temperature = 3e38f}, {1, -Infinity}) == 0, "extreme temperatures");
}};

const Test repetition{"sampler: the repetition penalty counts once per token, divides positive and multiplies negative logits", [] {
  const std::vector<int32_t> history{0, 0, 0};
  check(once({.repetitionPenalty = 2}, {3, 1.6f}, history) == 1, "3 / 2 < 1.6");
  check(once({.repetitionPenalty = 2}, {3, 1.4f}, history) == 0, "but not 3 / 8");
  check(once({.repetitionPenalty = 2}, {-1, -1.9f}, history) == 1, "-1 · 2 < -1.9");
  check(once({.repetitionPenalty = 2}, {-1, -2.1f}, history) == 0);
}};

const Test additive{"sampler: frequency counts occurrences, presence counts once, after the repetition penalty", [] {
  const std::vector<int32_t> history{0, 1, 0, 0};
  check(once({.frequencyPenalty = 1}, {5, 2.9f, 2.1f}, history) == 2, "5 − 3, 2.9 − 1, 2.1");
  check(once({.frequencyPenalty = 1}, {5, 3.1f, 2.05f}, history) == 1);
  check(once({.presencePenalty = 1}, {5, 4.5f, 4.1f}, history) == 2, "5 − 1, 4.5 − 1");
  check(once({.presencePenalty = 1}, {5.2f, 4.5f, 4.1f}, history) == 0);
  check(once({.repetitionPenalty = 2, .presencePenalty = 1}, {4, 0, 0.9f}, history) == 0, "4 / 2 − 1 > 0.9");
  check(once({.repetitionPenalty = 2, .presencePenalty = 1}, {4, 0, 1.2f}, history) == 2, "4 / 2 − 1 < 1.2 < (4 − 1) / 2");
}};

const Test window{"sampler: penalties look at the last tokens of the window only", [] {
  const std::vector<int32_t> history{0, 1, 1};
  check(once({.presencePenalty = 9, .repetitionWindow = 2}, {5, 4, 3}, history) == 0);
  check(once({.presencePenalty = 9, .repetitionWindow = 3}, {5, 4, 3}, history) == 2);
  check(once({.presencePenalty = 9, .repetitionWindow = 0}, {5, 4, 3}, history) == 2, "0 is all of them");
  check(once({.frequencyPenalty = 1, .repetitionWindow = 1}, {1, 5, 4.5f}, history) == 2, "one of two occurrences: 5 − 1");
}};

const Test bias{"sampler: logit bias bans, forces, adds after the penalties and ignores unknown tokens", [] {
  check(once({.logitBias = {{1, -100.0f}}}, {1, 50, 3}) == 2);
  check(once({.logitBias = {{0, 100.0f}}}, {1, 50, 3}) == 0);
  check(once({.logitBias = {{1, -Infinity}}}, {1, 50, 3}) == 2);
  check(once({.logitBias = {{0, Infinity}}}, {-Infinity, 50, 3}) == 1, "−∞ + ∞ is nothing");
  check(once({.logitBias = {{-1, 100.0f}, {3, 100.0f}, {1 << 30, 100.0f}}}, {1, 50, 3}) == 1);
  check(once({.repetitionPenalty = 2, .logitBias = {{0, 1.0f}}}, {4, 2.6f}, {0}) == 0, "4 / 2 + 1 = 3 > 2.6; (4 + 1) / 2 = 2.5");
  const auto counts = histogram({.temperature = 1, .logitBias = {{1, -100.0f}}}, {1, 3, 1}, 1000);
  check(counts[1] == 0);
}};

const Test temperature{"sampler: draws follow the softmax at temperature", [] {
  const std::vector<double> p{0.05, 0.4, 0.15, 0.1, 0.3};
  // 4 degrees of freedom: 18.47 is the 99.9th percentile.
  check(chiSquare(histogram({.temperature = 1, .seed = 3}, log(p), 50'000), p, 50'000) < 18.47);
  std::vector<double> sharper;
  for (const double x : p) sharper.push_back(x * x);
  const double sum = std::accumulate(sharper.begin(), sharper.end(), 0.0);
  for (double& x : sharper) x /= sum;
  check(chiSquare(histogram({.temperature = 0.5, .seed = 4}, log(p), 50'000), sharper, 50'000) < 18.47);
}};

const Test filters{"sampler: top_k, top_p and min_p keep exactly what they should and renormalize", [] {
  const std::vector<double> p{0.05, 0.4, 0.15, 0.1, 0.3};
  const auto expect = [&](Sampling s, std::vector<double> kept, const char* what) {
    const double sum = std::accumulate(kept.begin(), kept.end(), 0.0);
    for (double& x : kept) x /= sum;
    s.temperature = 1;
    s.seed = 11;
    check(chiSquare(histogram(s, log(p), 20'000), kept, 20'000) < 18.47, what);
  };
  expect({.topK = 2}, {0, 0.4, 0, 0, 0.3}, "top_k 2");
  expect({.topK = 4}, {0, 0.4, 0.15, 0.1, 0.3}, "top_k 4");
  expect({.topK = 9}, p, "top_k beyond the vocabulary");
  expect({.topP = 0.39f}, {0, 0.4, 0, 0, 0}, "one token reaches p");
  expect({.topP = 0.5f}, {0, 0.4, 0, 0, 0.3}, "the token that crosses p is kept");
  expect({.topP = 0.8f}, {0, 0.4, 0.15, 0, 0.3}, "three tokens");
  expect({.topP = 0}, {0, 0.4, 0, 0, 0}, "at least one");
  expect({.minP = 0.3f}, {0, 0.4, 0.15, 0, 0.3}, "relative to the top probability");
  expect({.minP = 1}, {0, 0.4, 0, 0, 0}, "the top itself stays");
  expect({.topK = 2, .topP = 0.55f}, {0, 0.4, 0, 0, 0}, "top_p after top_k's renormalization: 0.4 / 0.7 ≥ 0.55");
  expect({.topP = 0.8f, .minP = 0.5f}, {0, 0.4, 0, 0, 0.3}, "min_p after top_p");
}};

const Test ties{"sampler: among equal logits the filters keep the lowest ids", [] {
  const std::vector<float> equal(64, 1.0f);
  const auto k = histogram({.temperature = 1, .topK = 3}, equal, 3000);
  const auto p = histogram({.temperature = 1, .topP = 3.5f / 64}, equal, 4000);
  for (size_t i = 0; i < 64; ++i) {
    check((k[i] > 0) == (i < 3), "top_k");
    check((p[i] > 0) == (i < 4), "top_p");
  }
}};

const Test againstReference{"sampler: equals the naive chain on random inputs", [] {
  std::mt19937 random(20);
  const auto pick = [&](std::initializer_list<float> values) { return values.begin()[random() % values.size()]; };
  int drawn = 0;
  for (int round = 0; round < 3000; ++round) {
    const size_t size = 1 + random() % 700;
    auto logits = randomLogits(random, size, pick({0.1f, 1, 3, 10}));
    if (random() % 4 == 0) { // as a grammar leaves them
      for (float& logit : logits)
        if (random() % 32 != 0) logit = -std::numeric_limits<float>::infinity();
      logits[random() % size] = 1;
    }
    std::vector<int32_t> history(random() % 60);
    for (int32_t& token : history) token = static_cast<int32_t>(random() % size);
    Sampling s;
    s.temperature = pick({0, 0.2f, 0.7f, 1, 1.7f});
    s.topK = static_cast<uint32_t>(pick({0, 0, 1, 5, 40, 300}));
    s.topP = pick({1, 1, 0.95f, 0.5f, 0.1f});
    s.minP = pick({0, 0, 0.02f, 0.3f});
    s.repetitionPenalty = pick({1, 1, 1.1f, 1.8f});
    s.frequencyPenalty = pick({0, 0, 0.5f, -0.5f});
    s.presencePenalty = pick({0, 0, 1.5f});
    s.repetitionWindow = static_cast<uint32_t>(pick({0, 5, 256}));
    s.seed = random();
    if (random() % 3 == 0) s.logitBias = {{static_cast<int32_t>(random() % size), pick({-100, 2, 100})}};
    Sampler sampler(s);
    for (uint64_t index = 0; index < 3; ++index, ++drawn) {
      const int32_t expected = reference(s, {logits.begin(), logits.end()}, history, index);
      const int32_t actual = sampler.sample(logits, history, index);
      check(actual == expected, "round " + std::to_string(round) + ": " + std::to_string(actual) + " for " + std::to_string(expected));
    }
  }
  check(drawn == 9000);
}};

const Test weights{"sampler: softmax weights are exact to 3e-7 and their block sums add up", [] {
  std::vector<float> logits;
  for (int i = 0; i <= 9001; ++i) logits.push_back(static_cast<float>(i) * -0.01f);
  std::vector<float> out(logits.size()), sums;
  const double total = softmaxWeights(logits, 0, 1, out, sums);
  double expected = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double exact = logits[i] > -87 ? std::exp(double{logits[i]}) : 0;
    check(std::abs(out[i] - exact) <= 3e-7 * exact, std::to_string(logits[i]));
    expected += exact;
  }
  check(std::abs(total - expected) < 1e-6 * expected);
}};

const Test seeds{"sampler: the same seed and index give the same token, whatever was drawn before", [] {
  std::mt19937 random(5);
  const auto logits = randomLogits(random, 500, 1);
  const Sampling s{.temperature = 1, .topP = 0.95f, .seed = 77};
  Sampler forward(s), backward(s);
  std::vector<int32_t> a(50), b(50);
  for (size_t i = 0; i < 50; ++i) a[i] = forward.sample(logits, {}, i);
  for (size_t i = 50; i-- > 0;) b[i] = backward.sample(logits, {}, i);
  check(a == b);
  check(std::count(a.begin(), a.end(), a[0]) < 50, "indices differ");
}};

/// Prints, rather than bounds, the time per token at a Qwen-sized vocabulary: a bound would test the machine.

} // namespace
