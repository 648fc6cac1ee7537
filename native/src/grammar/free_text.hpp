#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mashbox::grammar {

/// The automaton of UTF-8 (RFC 3629). State 0 is between two characters.
inline constexpr uint8_t BrokenUtf8 = 0xff;
uint8_t stepUtf8(uint8_t state, uint8_t byte);
inline constexpr uint8_t Utf8States = 8;

/// Free text up to the first of some triggers, without some other texts: an Aho-Corasick automaton beside that of UTF-8.
class FreeText {
public:
  struct State {
    uint32_t node;
    uint8_t utf8;
  };
  enum class Outcome { Goes, Ends, Fails };
  struct Step {
    Outcome outcome;
    State state;
  };

  /// Without any trigger, text or token, the text may end between any two characters. `tokens`: a token set that ends it, or -1.
  FreeText(const std::vector<std::string>& until, const std::vector<std::string>& except, int64_t tokens);

  size_t nodes() const { return nodes_.size(); }
  Step step(State state, uint8_t byte) const;
  bool mayEnd(State state) const { return endless_ && state.utf8 == 0; }
  /// The token set that may end the text here, or -1.
  int64_t tokens(State state) const { return state.utf8 == 0 ? tokens_ : -1; }
  /// Some text leads from here to an end.
  bool alive(State state) const { return alive_.empty() || alive_[state.node * Utf8States + state.utf8]; }
  /// Bytes that mean something to it.
  const std::string& alphabet() const { return alphabet_; }

private:
  struct Node {
    std::array<uint32_t, 256> next{};
    uint32_t fail = 0;
    bool until = false, except = false;
  };

  uint32_t insert(const std::string& text);
  void link();
  void findAlive();

  std::vector<Node> nodes_;
  std::vector<bool> alive_;
  std::string alphabet_;
  bool endless_;
  int64_t tokens_;
};

} // namespace mashbox::grammar
