#include "gguf.hpp"

#include "grammar/matcher.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace mashbox::fuzz {
namespace {

using grammar::Grammar;
using grammar::Matcher;
using grammar::Vocabulary;

std::string outcome;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void note(const Error& error) {
  require(std::all_of(error.message.begin(), error.message.end(), [](char c) { return c >= 0x20 && c < 0x7f; }), "a message is one line of ASCII");
  require(!error.message.empty() && error.message.size() < 1000, "a message is short");
  outcome.clear();
  bool quoted = false;
  for (const char c : error.message) {
    quoted ^= c == '"';
    if (!quoted && (c < '0' || c > '9')) outcome += c;
  }
}

const std::shared_ptr<const Vocabulary>& vocabulary() {
  static const auto all = [] {
    std::vector<grammar::TokenText> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.push_back({std::string(1, static_cast<char>(byte))});
    for (const char* word : {"ab", "abc", "\"", "\":", "{\"", "\"}", "\xc3\xa9", "\xe2\x82", "  ", "the", " the", "12", "345", "<", "</", "tool", "_call>", "\n\n", "aaaaaaaa", "zzzz"})
      tokens.push_back({word});
    for (int i = 0; i < 4; ++i) tokens.push_back({"", false});
    return std::make_shared<const Vocabulary>(std::move(tokens));
  }();
  return all;
}

bool has(const std::vector<uint64_t>& mask, size_t token) { return (mask[token / 64] >> token % 64 & 1) != 0; }

/// Walks where the input's last bytes lead; what the mask has is accepted, and nothing else.
void walk(const std::shared_ptr<const Grammar>& compiled, const uint8_t* data, size_t size) {
  Matcher matcher(compiled);
  std::vector<uint64_t> mask(matcher.maskWords()), other(matcher.maskWords());
  const size_t steps = std::min<size_t>(size, 24);
  for (size_t step = 0; step < steps; ++step) {
    const uint8_t choice = data[size - 1 - step];
    if (const auto masked = matcher.mask(mask); !masked) return note(masked.error());
    std::vector<int32_t> allowed;
    for (size_t token = 0; token < compiled->vocabulary().size(); ++token)
      if (has(mask, token)) allowed.push_back(static_cast<int32_t>(token));
    if (allowed.empty()) {
      require(matcher.accepting(), "there is no dead end where every byte is a token");
      break;
    }
    const size_t probe = size_t{choice} * 7 % compiled->vocabulary().size();
    Matcher copy = matcher;
    const bool accepted = copy.accept(static_cast<int32_t>(probe));
    if (const auto masked = copy.mask(other); !masked) return note(masked.error());
    require(accepted == has(mask, probe), "a mask has what is accepted");
    for (const int32_t token : matcher.forcedTokens())
      if (!copy.accept(token)) break;
    require(matcher.accept(allowed[choice % allowed.size()]) || !matcher.mask(other), "what a mask has is accepted");
    if (choice % 16 == 0) matcher.rollback(choice / 16);
  }
  outcome = "accepted";
}

} // namespace

const std::string& lastOutcome() { return outcome; }

} // namespace mashbox::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mashbox;
  grammar::Limits limits;
  limits.terms = 20'000;
  limits.rowEntries = 1 << 20;
  limits.walkEntries = 1 << 19;
  limits.maskBytes = 1 << 20;
  const auto compiled = grammar::Grammar::compile(std::as_bytes(std::span(data, size)), fuzz::vocabulary(), limits);
  if (!compiled) fuzz::note(compiled.error());
  else fuzz::walk(*compiled, data, size);
  return 0;
}
