#pragma once

#include "gguf/file.hpp"
#include "grammar/merges.hpp"

namespace mashbox::model {

/// How the model's tokenizer joins tokens: by `tokenizer.ggml.merges`, or as the scores imply (src/tokenizer/SpmMerges.ts). What is missing or
/// broken is left out.
grammar::TokenMerges tokenMerges(const gguf::File& file);

} // namespace mashbox::model
