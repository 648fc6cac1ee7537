#pragma once

#include "gguf/cursor.hpp"
#include "gguf/file.hpp"

namespace mashbox::gguf {

/// Reads `count` tensor descriptions, which end the file's header, and finds their data behind it. Every tensor lies inside the file,
/// aligned, on bytes of its own; gaps and any order are allowed.
Result<std::vector<Tensor>> readTensors(Cursor& cursor, uint64_t count, uint64_t alignment);

/// Indices of `tensors` sorted by name; Invalid where two have the same name.
Result<std::vector<uint32_t>> orderByName(std::span<const Tensor> tensors);

} // namespace mashbox::gguf
