#include "mutate.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace mashbox::fuzz {
namespace {

constexpr size_t longest = 1 << 17;

class Mutator {
public:
  Mutator(std::string& bytes, const std::vector<std::string>& corpus, std::mt19937_64& random) : bytes_(bytes), corpus_(corpus), random_(random) {}

  void step() {
    if (bytes_.size() < 16) bytes_.resize(16 + below(64), '\0');
    switch (below(9)) {
      case 0: bytes_[place(1)] ^= char(1 << below(8)); break;
      case 1: bytes_[place(1)] = char(below(256)); break;
      case 2: store(place(4), uint32_t(interesting())); break;
      case 3: store(place(8), interesting()); break;
      case 4: editLength(); break;
      case 5: copyBlock(); break;
      case 6: bytes_.erase(place(1), 1 + below(below(4) == 0 ? 4096 : 16)); break;
      case 7: splice(); break;
      case 8: bytes_.resize(below(4) == 0 ? place(1) : bytes_.size() - below(std::min<size_t>(bytes_.size(), 64))); break;
    }
    if (bytes_.size() > longest) bytes_.resize(longest);
  }

private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  /// An offset with room for `width` bytes; header, keys and tensor table come first in a file and are hit more often.
  size_t place(size_t width) {
    const size_t range = bytes_.size() < width ? 1 : bytes_.size() - width + 1;
    return below(3) == 0 ? below(range) : below(1 + below(range));
  }

  template <class T> T load(size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  template <class T> void store(size_t at, T value) {
    if (at + sizeof value <= bytes_.size()) std::memcpy(bytes_.data() + at, &value, sizeof value);
  }

  uint64_t interesting() {
    switch (below(4)) {
      case 0: return below(64);                                     // ids, ranks, small counts
      case 1: return (uint64_t(1) << below(64)) + below(3) - 1;      // around every power of two
      case 2: return bytes_.size() + below(65) - 32;                 // around the end of the file
      default: return ~uint64_t(0) - below(64);                      // negative, or about to wrap
    }
  }

  /// Changes eight bytes that could be a length or a count.
  void editLength() {
    for (int attempt = 0; attempt < 32; ++attempt) {
      const size_t at = place(8);
      const auto value = load<uint64_t>(at);
      if (value > bytes_.size()) continue;
      const uint64_t choices[] = {value + 1, value - 1, 0, value * 2, bytes_.size() - at, bytes_.size() - at - 8, interesting()};
      store(at, choices[below(std::size(choices))]);
      return;
    }
  }

  void copyBlock() {
    const size_t from = place(1), length = std::min(1 + below(256), bytes_.size() - from);
    const std::string block = bytes_.substr(from, length);
    const size_t to = place(1);
    if (below(2) == 0)
      bytes_.insert(to, block);
    else
      bytes_.replace(to, std::min(length, bytes_.size() - to), block);
  }

  void splice() {
    const std::string& other = corpus_[below(corpus_.size())];
    if (other.empty()) return;
    const size_t from = below(other.size()), length = std::min(1 + below(2048), other.size() - from);
    bytes_.replace(place(1), below(length + 1), other, from, length);
  }

  std::string& bytes_;
  const std::vector<std::string>& corpus_;
  std::mt19937_64& random_;
};

} // namespace

std::string mutate(const std::string& input, const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string bytes = input;
  Mutator mutator(bytes, corpus, random);
  for (uint64_t steps = 1 + random() % (random() % 2 == 0 ? 2 : 8); steps > 0; --steps) mutator.step();
  return bytes;
}

} // namespace mashbox::fuzz
