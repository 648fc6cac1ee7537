#pragma once

#include "gguf/cursor.hpp"
#include "gguf/file.hpp"

namespace mashbox::gguf {

/// The keys of one file, in its order.
struct Metadata {
  std::vector<Entry> entries;
  std::vector<uint32_t> order; ///< indices of `entries`, sorted by key

  const Value* find(std::string_view key) const;
};

/// Reads `count` keys; what is allocated is bounded by the bytes that follow.
Result<Metadata> readMetadata(Cursor& cursor, uint64_t count);

} // namespace mashbox::gguf
