#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace mashbox::test {

/// A file that goes away with its owner.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string& bytes) {
    static unsigned count = 0;
    path_ = std::filesystem::temp_directory_path() / ("mashbox-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".gguf");
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

} // namespace mashbox::test
