#include "sched/step_plan.hpp"

#include <algorithm>

namespace mashbox::sched {

std::vector<Grant> planStep(std::span<const Demand> demands, uint32_t budget) {
  std::vector<size_t> order;
  for (size_t i = 0; i < demands.size(); ++i)
    if (demands[i].rows > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return demands[a].lastServed < demands[b].lastServed; });
  const auto prefills = std::stable_partition(order.begin(), order.end(), [&](size_t i) { return demands[i].decoding; });

  std::vector<Grant> grants;
  for (auto i = order.begin(); i != prefills && budget > 0; ++i, --budget) grants.push_back({*i, 1});

  const size_t firstPrefill = grants.size();
  for (auto i = prefills; i != order.end() && budget > 0; ++i) {
    const auto share = std::max(SmallestChunk, budget / static_cast<uint32_t>(order.end() - i));
    const uint32_t rows = std::min({share, budget, demands[*i].rows});
    grants.push_back({*i, rows});
    budget -= rows;
  }
  for (size_t g = firstPrefill; g < grants.size() && budget > 0; ++g) {
    const uint32_t more = std::min(budget, demands[grants[g].index].rows - grants[g].rows);
    grants[g].rows += more;
    budget -= more;
  }
  return grants;
}

} // namespace mashbox::sched
