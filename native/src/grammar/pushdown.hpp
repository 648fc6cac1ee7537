#pragma once

#include "grammar/automaton.hpp"

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace mashbox::grammar {

/// Where a rule goes on after a call: `Frames` holds them as linked stacks, each once.
using Frame = uint32_t;
/// Below it there is nothing: a thread that returns to it has matched the whole root rule.
inline constexpr Frame Bottom = 0;
/// Below it there is something that is not known: what returns to it is left to the caller.
inline constexpr Frame Unknown = 1;

/// One way to read the output so far: a state inside a rule, and the stack below. `Epsilon` stands on `Bottom` and `Unknown` alone.
struct Thread {
  Term state;
  Frame frame;
  auto operator<=>(const Thread&) const = default;
};

class Frames {
public:
  struct Entry {
    Term state;
    Frame below;
  };

  Frames() { clear(); }
  Frame push(Term state, Frame below);
  const Entry& operator[](Frame frame) const { return entries_[frame]; }
  size_t size() const { return entries_.size(); }
  void clear();

private:
  void grow();
  std::vector<Entry> entries_;
  std::vector<Frame> slots_;
};

/// The moves of threads over an automaton and its rules' bodies.
class Pushdown {
public:
  Pushdown(TermTable& terms, Automaton& automaton, const std::vector<Term>& bodies, const Limits& limits, Budget& budget)
      : terms_(terms), automaton_(automaton), bodies_(bodies), limits_(limits), budget_(budget) {}

  /// Adds a thread that has just come to `state`, and where it may have returned to.
  void arrive(Term state, Frame frame, const Frames& frames, std::vector<Thread>& out) const;
  /// The threads after a byte, sorted and distinct.
  void step(std::span<const Thread> threads, uint32_t byteClass, Frames& frames, std::vector<Thread>& out);
  /// The threads after a whole token as such, added to `out`.
  void stepToken(std::span<const Thread> threads, int32_t token, Frames& frames, std::vector<Thread>& out);
  /// Calls `visit` with every token that may come as such from a state or the rules that it may call.
  template <class Visit> void tokens(Term state, const Visit& visit);
  void tidy(std::vector<Thread>& threads);

  /// The classes of bytes that a state or the rules that it may call can begin with; valid until the next call.
  const ByteSet& beginnings(Term state);
  /// Whether content or free text can come next in a state or the rules that it may call.
  bool leadsToContent(Term state);

private:
  /// Adds the threads inside the rules that `threads` may call, those with a byte of the class only where one is given.
  void close(std::vector<Thread>& threads, uint32_t byteClass, Frames& frames);
  bool beginsWithContent(Term term);
  static constexpr uint32_t AnyClass = UINT32_MAX;

  TermTable& terms_;
  Automaton& automaton_;
  const std::vector<Term>& bodies_;
  const Limits& limits_;
  Budget& budget_;
  std::vector<uint32_t> beginningsAt_; ///< per term: its place below, or UINT32_MAX
  std::vector<ByteSet> beginnings_;
  std::vector<uint8_t> contentAt_; ///< per term: 0 unknown, 1 content can come next, 2 it cannot
  std::vector<Thread> closed_;
};

template <class Visit> void Pushdown::tokens(Term state, const Visit& visit) {
  Frames frames;
  std::vector<Thread> threads{{state, Bottom}};
  close(threads, AnyClass, frames);
  for (const Thread& thread : threads)
    for (const Symbol& symbol : automaton_.symbols(thread.state))
      if (symbol.kind == Symbol::Kind::Tokens)
        for (const int32_t token : terms_.tokens(symbol.index)) visit(token);
}

} // namespace mashbox::grammar
