#pragma once

#include "gguf/file.hpp"

namespace mashbox::gguf {

/// Checks everything under `tokenizer.`: a known tokenizer and pre-tokenizer, distinct UTF-8 tokens, types, scores and merges that
/// fit them, special ids that exist, flags and templates of the right type. Tokens are encoded elsewhere; this finds what would make
/// an encoder fail, or name a token that the model does not have. Errors name the key.
Result<void> checkVocabulary(const File& file);

} // namespace mashbox::gguf
