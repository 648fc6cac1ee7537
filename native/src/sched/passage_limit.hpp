#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace mashbox::sched {

/// Ends a passage of the output, such as reasoning, that has become too long.
struct PassageLimit {
  uint32_t tokens;             ///< of the passage, before its end is forced
  std::vector<int32_t> begin;  ///< what begins it; empty: the output begins inside it
  std::vector<int32_t> end;    ///< what ends it, at least one token
  std::vector<int32_t> forced; ///< put in place of what would be drawn, once the limit is reached; holds `end`
};

/// Follows the output of one request. Only its first passage is limited; an end that comes by itself forces nothing.
class PassageFollower {
public:
  explicit PassageFollower(std::optional<PassageLimit> limit);

  /// The token that has to come next, where one has to.
  std::optional<int32_t> forced() const;
  /// The next token of the output, forced or drawn.
  void take(int32_t token);

private:
  enum class Place : uint8_t { Before, Inside, Forcing, After };

  bool endsWith(const std::vector<int32_t>& tokens) const;
  void limit();

  std::optional<PassageLimit> limit_;
  std::vector<int32_t> recent_; ///< as many of the last tokens as `begin` or `end` has
  uint32_t inside_ = 0;
  uint32_t next_ = 0; ///< of `forced`
  Place place_ = Place::After;
};

} // namespace mashbox::sched
