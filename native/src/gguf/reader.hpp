#pragma once

#include "gguf/file.hpp"

namespace mashbox::gguf {

/// One GGUF file: its metadata and tensor table, checked against its bytes.
struct Part {
  std::vector<Entry> entries;
  std::vector<uint32_t> entryOrder; ///< indices of `entries`, sorted by key
  std::vector<Tensor> tensors;

  const Value* find(std::string_view key) const;
};

/// Reads one file of a model; `bytes` must outlive the part.
Result<Part> readPart(std::span<const std::byte> bytes);

/// Indices of `tensors` sorted by name; Invalid where two have the same name.
Result<std::vector<uint32_t>> orderByName(std::span<const Tensor> tensors);

Error keyError(ErrorKind kind, std::string_view key, const std::string& why);
Error tensorError(ErrorKind kind, std::string_view name, const std::string& why);

} // namespace mashbox::gguf
