#pragma once

#include "base/hash.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mashbox {

/// Texts, or numbers, of an untrusted file → values, in one block of memory. The first value of a key stays. It does not grow: at most `most` keys.
template <class Key, class Value> class FlatMap {
public:
  explicit FlatMap(size_t most = 0) {
    size_t slots = 8;
    while (slots < 2 * most) slots *= 2;
    slots_.resize(slots);
  }

  void insert(Key key, Value value) {
    Slot& slot = slots_[place(key)];
    if (!slot.used) slot = {key, value, true};
  }

  /// Null where it is not known; valid as long as the map.
  const Value* find(Key key) const {
    const Slot& slot = slots_[place(key)];
    return slot.used ? &slot.value : nullptr;
  }

private:
  struct Slot {
    Key key{};
    Value value{};
    bool used = false;
  };

  static size_t hashOf(std::string_view key) { return KeyedHash()(key); }
  static size_t hashOf(uint64_t key) { return KeyedHash()(std::string_view(reinterpret_cast<const char*>(&key), sizeof key)); }

  size_t place(Key key) const {
    size_t slot = hashOf(key) & (slots_.size() - 1);
    while (slots_[slot].used && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  std::vector<Slot> slots_;
};

} // namespace mashbox
