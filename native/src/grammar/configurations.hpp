#pragma once

#include "grammar/pushdown.hpp"
#include "grammar/slices.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mashbox::grammar {

/// A set of threads, each set once. 0 is the empty one.
using Configuration = uint32_t;
inline constexpr Configuration Dead = 0;

/// A stretch of characters that a configuration treats alike: any of `characters`, up to `length` of them.
struct Stretch {
  CharacterSet characters;
  uint32_t length;
  bool closed; ///< after `length` of them no other can come
};

/// The threads that walks over the vocabulary come across, as a lazily built automaton: walks look at the same few sets of threads
/// millions of times.
class Configurations {
public:
  Configurations(TermTable& terms, Automaton& automaton, Pushdown& pushdown, Budget& budget, const Limits& limits)
      : terms_(terms), automaton_(automaton), pushdown_(pushdown), budget_(budget), limits_(limits) {}

  /// Forgets all of them when they have become too many. Called between walks.
  void tidy();
  bool full() const { return rows_.size() >= limits_.walkEntries / 2; }

  size_t bytes() const { return rows_.size() * sizeof(Configuration) + threads_.size() * sizeof(Thread); }

  Configuration intern(std::span<const Thread> threads);
  Frames& frames() { return frames_; }
  Configuration next(Configuration configuration, uint8_t byte) {
    const uint32_t byteClass = automaton_.classOf(byte);
    const Configuration known = rows_[size_t{configuration} * width_ + byteClass];
    return known != Missing ? known : compute(configuration, byteClass);
  }
  /// One of its threads has returned to `Unknown`.
  bool escapes(Configuration configuration) const { return escapes_[configuration]; }
  /// The least count of an open repeat in its threads and on their stacks.
  uint32_t left(Configuration configuration) const { return left_[configuration]; }
  /// None where no character has enough others beside it, or where a thread may return meanwhile. `longest`: no more are asked for.
  std::optional<Stretch> stretch(Configuration configuration, uint32_t longest);

private:
  static constexpr Configuration Missing = UINT32_MAX;
  struct Uniform {
    CharacterSet characters;
    Configuration next = Dead;
  };

  uint32_t leftOf(std::span<const Thread> threads);
  Configuration compute(Configuration configuration, uint32_t byteClass);
  const Uniform& uniform(Configuration configuration);
  bool othersLeadTo(Configuration from, uint8_t utf8, Configuration target, unsigned& work);
  bool takesAny(Configuration configuration, const CharacterSet& characters);

  TermTable& terms_;
  Automaton& automaton_;
  Pushdown& pushdown_;
  Budget& budget_;
  const Limits& limits_;
  uint32_t width_ = 0;
  Frames frames_;
  std::vector<Thread> threads_;
  std::vector<uint32_t> begins_; ///< per configuration, and one more: where its threads begin
  std::vector<Configuration> rows_;
  std::vector<bool> escapes_;
  std::vector<uint32_t> left_;
  std::vector<uint32_t> slots_;
  std::vector<uint32_t> uniformAt_;
  std::vector<Uniform> uniforms_;
  std::vector<Thread> scratch_;
};

} // namespace mashbox::grammar
