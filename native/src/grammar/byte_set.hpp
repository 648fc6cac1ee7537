#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mashbox::grammar {

/// A set of byte values.
struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet range(unsigned low, unsigned high) {
    ByteSet set;
    for (unsigned byte = low; byte <= high; ++byte) set.insert(byte);
    return set;
  }

  void insert(unsigned byte) { words[byte / 64] |= uint64_t{1} << byte % 64; }
  bool contains(unsigned byte) const { return words[byte / 64] >> byte % 64 & 1; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  int count() const {
    int total = 0;
    for (const uint64_t word : words) total += std::popcount(word);
    return total;
  }
  ByteSet operator|(const ByteSet& other) const {
    return {{words[0] | other.words[0], words[1] | other.words[1], words[2] | other.words[2], words[3] | other.words[3]}};
  }
  ByteSet operator&(const ByteSet& other) const {
    return {{words[0] & other.words[0], words[1] & other.words[1], words[2] & other.words[2], words[3] & other.words[3]}};
  }
  bool operator==(const ByteSet&) const = default;
};

/// Folds a word into a hash.
inline uint64_t mixHash(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

} // namespace mashbox::grammar
