#include "cpu/backend_experts_route.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mashbox::cpu {
namespace {

using model::Gating;

constexpr float Lowest = -std::numeric_limits<float>::infinity();
/// The least sum by which weights are divided: the smallest normal half.
constexpr float LeastSum = 6.103515625e-5f;

/// Neither NaN nor +∞ survives, so that every later comparison and difference means something.
float orderly(float value) { return std::isnan(value) ? Lowest : std::min(value, std::numeric_limits<float>::max()); }

void score(const RouterRule& rule, const Kernels& kernels, float* x) {
  if (rule.gating == Gating::Softmax) kernels.softmax(x, rule.experts);
  if (rule.gating == Gating::Sigmoid)
    for (uint32_t e = 0; e < rule.experts; ++e) x[e] = 1 / (1 + std::exp(-x[e]));
  if (rule.gating == Gating::RootSoftplus)
    for (uint32_t e = 0; e < rule.experts; ++e) x[e] = std::sqrt(x[e] > 20 ? x[e] : std::log1p(std::exp(x[e])));
}

/// The sum of the two best values; of one where there are no two.
float bestTwo(const float* values, size_t count) {
  float best = Lowest, second = Lowest;
  for (size_t i = 0; i < count; ++i) {
    if (values[i] > best) second = std::exchange(best, values[i]);
    else second = std::max(second, values[i]);
  }
  return count > 1 ? best + second : best;
}

/// Keeps the `count` best of rising ids that are offered, best first, of equal values the earlier id.
class Best {
public:
  Best(ExpertChoice* kept, uint32_t count) : kept_(kept), count_(count) {}
  void offer(uint32_t id, float value) {
    if (size_ == count_ && !(value > kept_[size_ - 1].weight)) return;
    uint32_t at = size_ < count_ ? size_++ : size_ - 1;
    for (; at > 0 && value > kept_[at - 1].weight; --at) kept_[at] = kept_[at - 1];
    kept_[at] = {id, value};
  }

private:
  ExpertChoice* kept_;
  uint32_t count_, size_ = 0;
};

/// Scores for the choice: with the bias, and −∞ in the groups that are out.
void limitGroups(const RouterRule& rule, std::vector<float>& selection) {
  const size_t length = rule.experts / rule.groups;
  std::vector<ExpertChoice> kept(rule.usedGroups);
  Best best(kept.data(), rule.usedGroups);
  for (uint32_t g = 0; g < rule.groups; ++g) best.offer(g, bestTwo(selection.data() + g * length, length));
  std::vector<bool> in(rule.groups);
  for (const ExpertChoice& group : kept) in[group.expert] = true;
  for (uint32_t e = 0; e < rule.experts; ++e)
    if (!in[e / length]) selection[e] = Lowest;
}

void select(const RouterRule& rule, const float* values, ExpertChoice* out) {
  Best best(out, rule.used);
  for (uint32_t e = 0; e < rule.experts; ++e) best.offer(e, values[e]);
}

void selectAdjusted(const RouterRule& rule, const float* scores, ExpertChoice* out) {
  thread_local std::vector<float> selection;
  selection.assign(scores, scores + rule.experts);
  if (rule.selectionBias)
    for (uint32_t e = 0; e < rule.experts; ++e) selection[e] = orderly(selection[e] + rule.selectionBias[e]);
  if (rule.groups > 1) limitGroups(rule, selection);
  select(rule, selection.data(), out);
}

} // namespace

void chooseExperts(const RouterRule& rule, const Kernels& kernels, float* logits, ExpertChoice* out) {
  for (uint32_t e = 0; e < rule.experts; ++e) logits[e] = orderly(logits[e]);
  // Scores rise with the logits, which keep apart what rounds to one score.
  const bool plain = !rule.selectionBias && rule.groups == 1;
  if (plain) select(rule, logits, out);
  score(rule, kernels, logits);
  if (!plain) selectAdjusted(rule, logits, out);
  const std::span<ExpertChoice> chosen(out, rule.used);
  std::sort(chosen.begin(), chosen.end(), [](const ExpertChoice& a, const ExpertChoice& b) { return a.expert < b.expert; });
  for (ExpertChoice& choice : chosen) choice.weight = logits[choice.expert];
  if (rule.gating == Gating::SoftmaxOfSelected) {
    float max = Lowest, sum = 0;
    for (const ExpertChoice& choice : chosen) max = std::max(max, choice.weight);
    for (ExpertChoice& choice : chosen) sum += choice.weight = max == Lowest ? 0 : std::exp(choice.weight - max);
    for (ExpertChoice& choice : chosen) choice.weight = max == Lowest ? 0 : choice.weight / sum;
  }
  float factor = rule.scale;
  if (rule.normalized) {
    float sum = 0;
    for (const ExpertChoice& choice : chosen) sum += choice.weight;
    factor /= std::max(sum, LeastSum);
  }
  for (ExpertChoice& choice : chosen) choice.weight *= factor;
}

void ExpertGroups::assign(std::span<const ExpertChoice> choices, uint32_t used, uint32_t experts) {
  places_.assign(experts, 0);
  groups_.clear();
  rows_.resize(choices.size());
  weights_.resize(choices.size());
  for (const ExpertChoice& choice : choices) ++places_[choice.expert];
  size_t begin = 0;
  for (uint32_t expert = 0; expert < experts; ++expert) {
    const size_t count = std::exchange(places_[expert], begin);
    if (count) groups_.push_back({expert, begin, begin + count});
    begin += count;
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const size_t at = places_[choices[i].expert]++;
    rows_[at] = static_cast<uint32_t>(i / used);
    weights_[at] = choices[i].weight;
  }
}

} // namespace mashbox::cpu
