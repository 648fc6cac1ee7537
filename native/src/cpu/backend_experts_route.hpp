#pragma once

#include "cpu/kernels.hpp"
#include "model/experts.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::cpu {

/// How one row chooses among experts and what weight each of them gets.
struct RouterRule {
  model::Gating gating = model::Gating::Softmax;
  uint32_t experts = 0, used = 0;    ///< 1 ≤ used ≤ experts
  uint32_t groups = 1, usedGroups = 1; ///< only experts of the best groups are chosen; `groups` divides `experts`
  bool normalized = false;           ///< the weights of a row add up to 1 (before `scale`)
  float scale = 1;
  const float* selectionBias = nullptr; ///< per expert; added to the scores for the choice only
};

struct ExpertChoice {
  uint32_t expert;
  float weight;
};

/// Chooses `rule.used` experts for a row of router logits, which become scores, and writes them by rising id. The best scores win, of
/// equal ones the lower id. A NaN logit or bias is the worst there is and its weight is 0, whatever the other experts'; every logit being
/// NaN chooses the first ids with weight 0.
void chooseExperts(const RouterRule& rule, const Kernels& kernels, float* logits, ExpertChoice* out);

/// (row, expert) pairs sorted by expert, then by row.
class ExpertGroups {
public:
  struct Group {
    uint32_t expert;
    size_t begin, end; ///< of its pairs
    size_t size() const { return end - begin; }
  };

  /// Counting sort of rows × used choices. Reuses its memory.
  void assign(std::span<const ExpertChoice> choices, uint32_t used, uint32_t experts);

  std::span<const Group> groups() const { return groups_; } ///< of the experts that any row chose, by rising id
  size_t pairs() const { return rows_.size(); }
  uint32_t row(size_t pair) const { return rows_[pair]; }
  float weight(size_t pair) const { return weights_[pair]; }

private:
  std::vector<size_t> places_;
  std::vector<Group> groups_;
  std::vector<uint32_t> rows_;
  std::vector<float> weights_;
};

} // namespace mashbox::cpu
