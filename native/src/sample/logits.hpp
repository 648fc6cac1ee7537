#pragma once

#include "sample/sampler.hpp"

#include <cstdint>
#include <span>
#include <vector>

/// Passes over one row of logits. They are written in blocks of 32 so that the compiler can vectorize them for any x86-64.
namespace mashbox::sample {

inline constexpr size_t ScoreBlock = 32;

/// The largest value of every block of `ScoreBlock` values, NaN counting as −∞; the last block may be short.
void blockMaxima(std::span<const float> values, std::vector<float>& maxima);

/// The first index of the largest value, 0 where every value is NaN or −∞.
int32_t argmax(std::span<const float> values, std::span<const float> maxima);

/// weights[i] = exp((logits[i] − largest) / temperature), 0 for NaN and −∞, with the sum of every block; returns the sum of all.
/// Where `largest` is +∞, only the values that are +∞ have a weight.
double softmaxWeights(std::span<const float> logits, float largest, float temperature, std::span<float> weights, std::vector<float>& blockSums);

/// out[i] = values[i] where the mask has bit i, else −∞; tokens beyond the mask have none.
void maskLogits(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out);

/// The `k` first candidates of `logits` (1 ≤ k ≤ size), by id; fewer where fewer are numbers above −∞.
void selectTopK(std::span<const float> logits, std::span<const float> maxima, size_t k, std::vector<Candidate>& out, std::vector<Candidate>& scratch);

/// Keeps the smallest leading set of the candidates whose weights add up to at least `target` (at least one; all of them where they
/// add up to less), in the order in which they stood.
void keepNucleus(std::vector<Candidate>& candidates, double target, std::vector<Candidate>& scratch);

} // namespace mashbox::sample
