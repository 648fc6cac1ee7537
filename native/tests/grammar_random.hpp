#pragma once

#include "grammar_ir.hpp"

#include <random>
#include <string>
#include <vector>

namespace mashbox::test {

using Random = std::mt19937_64;

inline uint32_t below(Random& random, uint32_t count) { return static_cast<uint32_t>(random() % count); }

/// The characters that random grammars are about: one-byte, two-byte and three-byte ones.
inline const std::vector<std::string>& letters() {
  static const std::vector<std::string> all{"a", "b", "\"", "é", "€"};
  return all;
}

inline std::string randomText(Random& random, uint32_t most) {
  std::string text;
  for (uint32_t rest = below(random, most + 1); rest > 0; --rest) text += letters()[below(random, 3 + below(random, 3))];
  return text;
}

/// A random node of the regular kinds, of about `size` nodes.
inline IrWriter::Node randomRegular(IrWriter& ir, Random& random, uint32_t size) {
  const auto child = [&](uint32_t share) { return randomRegular(ir, random, size / share); };
  if (size <= 1) {
    switch (below(random, 6)) {
      case 0: return ir.set({{'a', 'b'}}, below(random, 2) == 0);
      case 1: return ir.set({{'b', 0xe9}}, below(random, 2) == 0);
      case 2: return ir.set({}, true);
      case 3: return ir.free({}, {randomText(random, 1) + "b"});
      default: return ir.text(randomText(random, 2));
    }
  }
  const auto many = [&] {
    std::vector<IrWriter::Node> items;
    for (uint32_t rest = 2 + below(random, 2); rest > 0; --rest) items.push_back(child(2));
    return items;
  };
  switch (below(random, 11)) {
    case 0: case 1: return ir.sequence(many());
    case 2: case 3: return ir.choice(many());
    case 4: return ir.repeat(child(1 + (size > 1)));
    case 5: {
      const uint32_t min = below(random, 4);
      return ir.repeat(child(2), min, min + below(random, 4));
    }
    case 6: return ir.both(many());
    case 7: return ir.complement(child(2));
    case 8: return below(random, 2) == 0 ? ir.lexeme(child(2)) : ir.content(child(2));
    case 9: return ir.free({{"b", {}}, {"aé", {}}}, below(random, 2) == 0 ? std::vector<std::string>{"\""} : std::vector<std::string>{});
    default: {
      std::vector<IrWriter::Item> items;
      for (uint32_t rest = 1 + below(random, 3); rest > 0; --rest)
        items.push_back({ir.sequence({ir.set({{'a', 'b'}}), child(3)}), below(random, 2) == 0, below(random, 4) == 0});
      const uint32_t min = below(random, 2);
      return ir.permutation(items, below(random, 3) == 0 ? ir.text("") : ir.text("\""), below(random, 2) == 0, min, below(random, 3) == 0 ? min + 1 : IrWriter::Unbounded);
    }
  }
}

/// A random grammar with rules that call each other, some of them again after at least one character.
inline std::string randomRecursive(Random& random) {
  IrWriter ir;
  const std::vector<std::string> names{"one", "two", "three"};
  const auto call = [&] { return ir.rule(names[below(random, 3)]); };
  for (const auto& name : names) {
    std::vector<IrWriter::Node> alternatives{randomRegular(ir, random, 2)};
    for (uint32_t rest = 1 + below(random, 2); rest > 0; --rest) {
      std::vector<IrWriter::Node> items{ir.text(letters()[below(random, 4)])};
      for (uint32_t parts = 1 + below(random, 2); parts > 0; --parts) items.push_back(below(random, 3) == 0 ? ir.repeat(call(), 0, 1 + below(random, 2)) : call());
      if (below(random, 2) == 0) items.push_back(randomRegular(ir, random, 1));
      alternatives.push_back(ir.sequence(items));
    }
    ir.define(name, ir.choice(alternatives));
  }
  return ir.finish("one");
}

} // namespace mashbox::test
