#pragma once

#include "grammar/grammar.hpp"
#include "ir_writer.hpp"
#include "test.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mashbox::test {

/// For outcomes that the structure alone decides, however slow the build or the machine is.
inline const grammar::Limits Patient{.compileTime = std::chrono::minutes(10), .maskTime = std::chrono::minutes(10)};

/// Every byte as a token of its own, `words` after them, and then `specials` tokens without text.
inline std::shared_ptr<const grammar::Vocabulary> byteVocabulary(const std::vector<std::string>& words, size_t specials = 2) {
  std::vector<grammar::TokenText> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back({std::string(1, static_cast<char>(byte)), true});
  for (const auto& word : words) tokens.push_back({word, true});
  for (size_t i = 0; i < specials; ++i) tokens.push_back({"", false});
  return std::make_shared<const grammar::Vocabulary>(std::move(tokens));
}

inline std::shared_ptr<const grammar::Grammar> compile(const std::string& ir, std::shared_ptr<const grammar::Vocabulary> vocabulary, const grammar::Limits& limits = Patient) {
  auto grammar = grammar::Grammar::compile(irBytes(ir), std::move(vocabulary), limits);
  check(static_cast<bool>(grammar), grammar ? "" : grammar.error().message);
  return *grammar;
}

} // namespace mashbox::test
