#pragma once

#include "gguf/metadata.hpp"

namespace mashbox::gguf {

/// One GGUF file: the whole model, or a part of a split one.
struct Part {
  Metadata metadata;
  std::vector<Tensor> tensors;
};

/// Reads one file of a model; `bytes` must outlive the part.
Result<Part> readPart(std::span<const std::byte> bytes);

} // namespace mashbox::gguf
