#include "sample/logprobs.hpp"
#include "sample/sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

// Microseconds per token of the sampler and of log probabilities over a vocabulary of 151 936 logits, the best of 20 draws.
namespace {

using namespace mashbox::sample;

constexpr size_t Vocabulary = 151'936;

std::vector<float> randomLogits(float deviation) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(Vocabulary);
  for (float& value : logits) value = normal(random);
  return logits;
}

template <class Run> void report(const char* name, const Run& run) {
  double best = 1e9;
  for (uint64_t i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(i);
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("%-26s %7.1f us\n", name, best);
}

} // namespace

int main() {
  const auto flat = randomLogits(2.5f);
  auto peaked = flat;
  for (size_t i = 0; i < 30; ++i) peaked[i * 5000] = 22 - 0.3f * static_cast<float>(i);
  const std::vector<int32_t> history(256, 17);
  const struct {
    const char* name;
    Sampling sampling;
    const std::vector<float>& logits;
  } chains[] = {
      {"greedy", {}, peaked},
      {"softmax", {.temperature = 0.8f}, peaked},
      {"top_k 40", {.temperature = 0.8f, .topK = 40}, peaked},
      {"top_k 40, top_p, min_p", {.temperature = 0.8f, .topK = 40, .topP = 0.95f, .minP = 0.05f}, peaked},
      {"top_p 0.95, peaked", {.temperature = 0.8f, .topP = 0.95f}, peaked},
      {"top_p 0.95, flat", {.temperature = 0.8f, .topP = 0.95f}, flat},
      {"top_p 0.95, flat, hot", {.temperature = 5, .topP = 0.95f}, flat},
      {"min_p 0.05", {.temperature = 0.8f, .minP = 0.05f}, peaked},
      {"penalties, top_p, peaked", {.temperature = 0.8f, .topP = 0.95f, .repetitionPenalty = 1.1f, .presencePenalty = 0.5f}, peaked},
  };
  for (const auto& [name, sampling, logits] : chains) {
    Sampler sampler(sampling);
    report(name, [&, &logits = logits](uint64_t i) { sampler.sample(logits, history, i); });
  }
  LogprobReader reader;
  report("log probabilities, top 20", [&](uint64_t i) { reader.read(flat, static_cast<int32_t>(i), 20); });
}
