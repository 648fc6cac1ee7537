#include "grammar/characters.hpp"

#include <algorithm>

namespace mashbox::grammar {
namespace {

using Range = std::pair<uint32_t, uint32_t>;

std::vector<Range> normalized(std::vector<Range> ranges, bool negated) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<Range> merged;
  for (const auto& [low, high] : ranges) {
    if (!merged.empty() && low <= merged.back().second + 1) merged.back().second = std::max(merged.back().second, high);
    else merged.emplace_back(low, high);
  }
  if (negated) {
    std::vector<Range> outside;
    uint32_t from = 0;
    for (const auto& [low, high] : merged) {
      if (low > from) outside.emplace_back(from, low - 1);
      from = high + 1;
    }
    if (from <= 0x10ffff) outside.emplace_back(from, 0x10ffff);
    merged = std::move(outside);
  }
  std::vector<Range> result;
  const auto add = [&](uint32_t low, uint32_t high) {
    if (low <= high) result.emplace_back(low, high);
  };
  for (const auto& [low, high] : merged) {
    add(low, std::min(high, 0xd7ffu));
    add(std::max(low, 0xe000u), high);
  }
  return result;
}

/// The UTF-8 of the code points from `low` to `high`, both of `bytes` bytes, without their first `done` bytes. Where the two share a
/// byte it stands alone; else the range falls into a beginning, whole blocks, and an end.
Term encoded(TermTable& terms, uint32_t low, uint32_t high, unsigned bytes, unsigned done) {
  const unsigned shift = 6 * (bytes - 1 - done);
  const uint32_t mask = (uint32_t{1} << shift) - 1;
  const auto byteOf = [&](uint32_t code) -> uint32_t {
    if (bytes == 1) return code;
    constexpr uint32_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    return done == 0 ? leads[bytes] | code >> shift : 0x80 | (code >> shift & 0x3f);
  };
  const auto one = [&](uint32_t first, uint32_t last) { return terms.bytes(ByteSet::range(byteOf(first), byteOf(last))); };
  if (shift == 0) return one(low, high);
  if (low >> shift == high >> shift) return terms.sequence(one(low, low), encoded(terms, low & mask, high & mask, bytes, done + 1));
  std::vector<Term> parts;
  uint32_t from = low >> shift, to = high >> shift;
  if ((low & mask) != 0) parts.push_back(terms.sequence(one(low, low), encoded(terms, low & mask, mask, bytes, done + 1))), ++from;
  if ((high & mask) != mask) parts.push_back(terms.sequence(one(high, high), encoded(terms, 0, high & mask, bytes, done + 1))), --to;
  if (from <= to && to != UINT32_MAX) parts.push_back(terms.sequence(one(from << shift, to << shift), encoded(terms, 0, mask, bytes, done + 1)));
  return terms.choice(std::move(parts));
}

} // namespace

Term characters(TermTable& terms, std::vector<Range> ranges, bool negated) {
  constexpr Range widths[] = {{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xffff}, {0x10000, 0x10ffff}};
  std::vector<Term> parts;
  for (const auto& [low, high] : normalized(std::move(ranges), negated)) {
    for (unsigned width = 0; width < 4; ++width) {
      const uint32_t from = std::max(low, widths[width].first), to = std::min(high, widths[width].second);
      if (from <= to) parts.push_back(encoded(terms, from, to, width + 1, 0));
    }
  }
  return terms.choice(std::move(parts));
}

Term anyText(TermTable& terms) { return terms.repeat(characters(terms, {}, true), 0, Unbounded); }

} // namespace mashbox::grammar
