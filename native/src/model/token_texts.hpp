#pragma once

#include "base/result.hpp"
#include "gguf/file.hpp"
#include "grammar/vocabulary.hpp"

#include <vector>

namespace mashbox::model {

/// What each token of a vocabulary adds to the output, as src/tokenizer/TokenPieces.ts has it: control, unknown and unused tokens add
/// nothing, user-defined ones their text. Of a file that `gguf::checkVocabulary` accepts.
Result<std::vector<grammar::TokenText>> tokenTexts(const gguf::File& file);

} // namespace mashbox::model
