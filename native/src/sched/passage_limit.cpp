#include "sched/passage_limit.hpp"

#include <algorithm>
#include <utility>

namespace mashbox::sched {

PassageFollower::PassageFollower(std::optional<PassageLimit> limit) : limit_(std::move(limit)) {
  if (!limit_) return;
  place_ = limit_->begin.empty() ? Place::Inside : Place::Before;
  this->limit();
}

std::optional<int32_t> PassageFollower::forced() const {
  return place_ == Place::Forcing ? std::optional(limit_->forced[next_]) : std::nullopt;
}

void PassageFollower::take(int32_t token) {
  if (place_ == Place::After) return;
  if (place_ == Place::Forcing) {
    if (++next_ == limit_->forced.size()) place_ = Place::After;
    return;
  }
  recent_.push_back(token);
  if (recent_.size() > std::max(limit_->begin.size(), limit_->end.size())) recent_.erase(recent_.begin());
  if (place_ == Place::Before) {
    if (!endsWith(limit_->begin)) return;
    place_ = Place::Inside;
    recent_.clear();
  } else {
    ++inside_;
    if (endsWith(limit_->end)) {
      place_ = Place::After;
      return;
    }
  }
  this->limit();
}

bool PassageFollower::endsWith(const std::vector<int32_t>& tokens) const {
  return tokens.size() <= recent_.size() && std::equal(tokens.rbegin(), tokens.rend(), recent_.rbegin());
}

void PassageFollower::limit() {
  if (place_ == Place::Inside && inside_ >= limit_->tokens) place_ = limit_->forced.empty() ? Place::After : Place::Forcing;
}

} // namespace mashbox::sched
