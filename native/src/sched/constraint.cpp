#include "sched/constraint.hpp"

#include "sample/logits.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace mashbox::sched {
namespace {

void set(std::vector<uint64_t>& mask, int32_t token, bool value) {
  const auto word = static_cast<size_t>(token) / 64;
  if (token < 0 || word >= mask.size()) return;
  const uint64_t bit = uint64_t{1} << token % 64;
  mask[word] = value ? mask[word] | bit : mask[word] & ~bit;
}

bool any(const std::vector<uint64_t>& mask) {
  return std::any_of(mask.begin(), mask.end(), [](uint64_t word) { return word != 0; });
}

} // namespace

Result<std::span<const float>> Constraint::restrict(std::span<const float> logits, std::span<const int32_t> stopTokens, std::span<const int32_t> tooEarly) {
  mask_.resize(matcher_.maskWords());
  if (auto masked = matcher_.mask(mask_); !masked) return std::move(masked).error();
  const bool accepting = matcher_.accepting();
  if (accepting)
    for (const int32_t token : stopTokens) set(mask_, token, true);
  if (!tooEarly.empty()) {
    std::vector<uint64_t> later = mask_;
    for (const int32_t token : tooEarly) set(later, token, false);
    if (any(later)) mask_ = std::move(later);
  }
  if (!any(mask_)) {
    if (accepting) return std::span<const float>();
    return Error{ErrorKind::DeadEnd, "no token of the model's can follow within the grammar", "grammar"};
  }
  restricted_.resize(logits.size());
  sample::maskLogits(logits, mask_, restricted_);
  return std::span<const float>(restricted_);
}

int32_t Constraint::allowed(int32_t token) const {
  const auto word = static_cast<size_t>(token) / 64;
  if (token >= 0 && word < mask_.size() && (mask_[word] >> token % 64 & 1) != 0) return token;
  const auto first = std::find_if(mask_.begin(), mask_.end(), [](uint64_t bits) { return bits != 0; });
  return static_cast<int32_t>((first - mask_.begin()) * 64 + std::countr_zero(*first));
}

std::vector<int32_t> Constraint::ahead() {
  if (!jumpAhead_) return {};
  std::vector<int32_t> tokens = matcher_.forcedTokens();
  size_t accepted = 0;
  while (accepted < tokens.size() && matcher_.accept(tokens[accepted])) ++accepted;
  tokens.resize(accepted);
  return tokens;
}

} // namespace mashbox::sched
