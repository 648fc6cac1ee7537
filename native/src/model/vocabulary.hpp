#pragma once

#include "gguf/file.hpp"

#include <cstdint>

namespace mashbox::model {

/// Checks the tokenizer's keys against each other and returns the number of tokens. The tokenizer itself runs elsewhere; what is
/// checked here is what would make it fail or name a token that the model has not.
Result<uint32_t> checkVocabulary(const gguf::File& file);

/// Every special token id must be below `tokens`; an id that is a row of padding is the embedding's fault.
Result<void> checkSpecialTokens(const gguf::File& file, uint32_t tokens, uint64_t embeddingRows);

} // namespace mashbox::model
