#include "sample/logprobs.hpp"
#include "test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace mashbox::sample;
using mashbox::test::check;
using mashbox::test::Test;

constexpr float Infinity = std::numeric_limits<float>::infinity();
constexpr float NaN = std::numeric_limits<float>::quiet_NaN();

/// The log softmax in double, written for clarity.
std::vector<double> logSoftmax(const std::vector<float>& logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const double x : logits) total += std::exp(x - largest);
  std::vector<double> result;
  for (const double x : logits) result.push_back(x - largest - std::log(total));
  return result;
}

const Test reference{"logprobs: equal the log softmax in double to 1e-5, best first", [] {
  std::mt19937 random(7);
  LogprobReader reader;
  for (const size_t size : {1u, 31u, 32u, 33u, 1000u, 32'000u, 151'936u})
    for (const float deviation : {0.01f, 2.0f, 30.0f}) {
      std::normal_distribution<float> normal(0, deviation);
      std::vector<float> logits(size);
      for (float& x : logits) x = normal(random);
      const auto expected = logSoftmax(logits);
      std::vector<int32_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
      const auto near = [&](float actual, int32_t token) {
        const double wanted = expected[static_cast<size_t>(token)];
        return std::abs(actual - wanted) <= 1e-5 * std::max(1.0, std::abs(wanted));
      };
      for (const uint32_t top : {0u, 1u, 5u, 20u}) {
        const auto token = static_cast<int32_t>(random() % size);
        const auto result = reader.read(logits, token, top);
        check(near(result.chosen, token));
        check(result.top.size() == std::min<size_t>(top, size));
        for (size_t i = 0; i < result.top.size(); ++i) check(result.top[i].token == order[i] && near(result.top[i].score, order[i]));
      }
    }
}};

const Test hostile{"logprobs: NaN and infinite logits give numbers that JSON can hold", [] {
  LogprobReader reader;
  for (const std::vector<float>& logits :
    {std::vector<float>{NaN, 1, -Infinity}, {NaN, NaN, NaN}, {-Infinity, -Infinity, -Infinity}, {Infinity, 1, Infinity}, {3e38f, -3e38f, 0}})
    for (int32_t token = -1; token <= 3; ++token) {
      const auto result = reader.read(logits, token, 20);
      check(result.chosen <= 0 && result.chosen >= LeastLogprob);
      check(result.top.size() == 3);
      for (const auto& candidate : result.top) check(candidate.score <= 0 && candidate.score >= LeastLogprob);
    }
  check(reader.read(std::vector<float>{NaN, 1, -Infinity}, 1, 0).chosen == 0, "the only token");
  check(reader.read(std::vector<float>{NaN, 1, -Infinity}, 0, 0).chosen == LeastLogprob);
  check(reader.read(std::vector<float>{-Infinity, -Infinity}, 0, 0).chosen == LeastLogprob, "no distribution");
  check(std::abs(reader.read(std::vector<float>{Infinity, 1, Infinity}, 2, 0).chosen + std::log(2.0f)) < 1e-6f, "infinities share it");
  check(reader.read({}, 0, 5).top.empty());
}};

} // namespace
