#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace mashbox::gguf {

/// `<prefix>-00002-of-00003.gguf` taken apart.
struct SplitName {
  std::string prefix;
  uint32_t number = 0; ///< 1-based
  uint32_t count = 0;

  std::string path(uint32_t part) const; ///< of the 1-based part
};

/// False where the path is not one of a part.
bool parseSplitName(const std::string& path, SplitName& name);

} // namespace mashbox::gguf
