#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace mashbox {

/// Hashes strings of an untrusted file: keyed at random per process, so that nobody can prepare texts that collide.
/// Folded 64 × 64 → 128-bit products, as in wyhash.
class KeyedHash {
public:
  size_t operator()(std::string_view text) const {
    static const uint64_t key = [] {
      std::random_device device;
      return uint64_t(device()) << 32 | device();
    }();
    uint64_t state = fold(key ^ text.size(), 0x9e3779b97f4a7c15);
    while (text.size() > 8) {
      state = fold(load(text.data(), 8) ^ state, key | 1);
      text.remove_prefix(8);
    }
    return fold(load(text.data(), text.size()) ^ state, 0xa0761d6478bd642f ^ key);
  }

private:
  static uint64_t load(const char* at, size_t bytes) {
    uint64_t word = 0;
    if (bytes != 0) std::memcpy(&word, at, bytes);
    return word;
  }
  static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide(a) * b;
    return uint64_t(product) ^ uint64_t(product >> 64);
  }
};

} // namespace mashbox
