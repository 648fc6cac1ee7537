#include "fake_decoder.hpp"
#include "sched/passage_limit.hpp"

#include <algorithm>
#include <vector>

namespace {

using namespace mashbox;
using namespace mashbox::test;

using Tokens = std::vector<int32_t>;

/// What comes out where the model would write these tokens.
Tokens follow(const std::optional<PassageLimit>& limit, const Tokens& drawn) {
  PassageFollower follower(limit);
  Tokens output;
  for (const int32_t token : drawn) {
    const int32_t next = follower.forced().value_or(token);
    output.push_back(next);
    follower.take(next);
  }
  return output;
}

const Test limits{"passage limit: its end is forced after so many tokens, unless it came by itself", [] {
  const Tokens drawn{1, 2, 3, 4, 5, 6, 7};
  check(follow(std::nullopt, drawn) == drawn);
  check(follow(PassageLimit{3, {}, {9}, {8, 9}}, drawn) == Tokens{1, 2, 3, 8, 9, 6, 7});
  check(follow(PassageLimit{0, {}, {9}, {8, 9}}, drawn) == Tokens{8, 9, 3, 4, 5, 6, 7}, "nothing at all");
  check(follow(PassageLimit{3, {}, {2}, {8, 9}}, drawn) == drawn, "the end came");
  check(follow(PassageLimit{3, {}, {2, 3}, {8, 9}}, drawn) == drawn, "an end of two tokens came, the last of them at the limit");
  check(follow(PassageLimit{2, {}, {2, 3}, {8, 9}}, drawn) == Tokens{1, 2, 8, 9, 5, 6, 7}, "half an end is none");
  check(follow(PassageLimit{2, {3}, {9}, {8, 9}}, drawn) == Tokens{1, 2, 3, 4, 5, 8, 9}, "it begins in the output");
  check(follow(PassageLimit{0, {2, 3}, {9}, {8, 9}}, drawn) == Tokens{1, 2, 3, 8, 9, 6, 7}, "it begins with two tokens");
  check(follow(PassageLimit{0, {6, 3}, {9}, {8, 9}}, drawn) == drawn, "it never begins");
  check(follow(PassageLimit{1, {2}, {2}, {8}}, {2, 2, 2, 2}) == Tokens{2, 2, 2, 2}, "what begins it may end it");
  check(follow(PassageLimit{1, {2}, {9}, {8, 9}}, {2, 5, 0, 0, 2, 5, 5}) == Tokens{2, 5, 8, 9, 2, 5, 5}, "only the first is limited");
}};

const Test scheduled{"passage limit: forced tokens are part of the output of a request, and change no token before them", test::threaded, [] {
  const auto free = alone(request(5, 20, 30, 0)).tokens;
  auto r = request(5, 20, 30, 0);
  for (const uint32_t least : {0u, 1u, 7u, 29u}) {
    r.limit = PassageLimit{least, {}, {1}, {2, 3, 1}};
    const auto outcome = alone(r);
    check(outcome.tokens.size() == 30 && outcome.done->reason == FinishReason::Length && outcome.done->generatedTokens == 30);
    const bool ended = std::find(free.begin(), free.begin() + least, 1) != free.begin() + least;
    check(std::equal(free.begin(), free.begin() + least, outcome.tokens.begin()));
    if (ended) continue;
    const Tokens forced{2, 3, 1};
    for (size_t i = 0; i < 3 && least + i < 30; ++i) check(outcome.tokens[least + i] == forced[i]);
  }
  r.limit = PassageLimit{3, {}, {1}, {2, 3, 1}};
  r.stopTokens = {2};
  check(alone(r).tokens.size() >= 6, "a forced token ends nothing");
  r.topLogprobs = 2;
  const auto scored = alone(r);
  check(scored.logprobs.size() == scored.tokens.size());
}};

} // namespace
