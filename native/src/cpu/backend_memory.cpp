#include "cpu/backend_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

namespace mashbox::cpu {
namespace {

namespace fs = std::filesystem;

/// The number after `name` in a file of "name value" lines.
std::optional<uint64_t> field(const fs::path& path, const std::string& name) {
  std::ifstream in(path);
  for (std::string word; in >> word;)
    if (uint64_t value; word == name && in >> value) return value;
  return std::nullopt;
}

/// The number that a file consists of; nothing for "max".
std::optional<uint64_t> number(const fs::path& path) {
  std::ifstream in(path);
  if (uint64_t value; in >> value) return value;
  return std::nullopt;
}

/// What one cgroup folder leaves; page cache can be dropped and so does not count as used.
std::optional<uint64_t> leftIn(const fs::path& folder, const char* limitFile, const char* usageFile, const std::string& statPrefix) {
  const auto limit = number(folder / limitFile), usage = number(folder / usageFile);
  if (!limit || !usage) return std::nullopt;
  const auto stat = [&](const char* name) { return field(folder / "memory.stat", statPrefix + name).value_or(0); };
  const uint64_t cache = std::min(*usage, stat("active_file") + stat("inactive_file"));
  const uint64_t used = *usage - cache;
  return *limit > used ? *limit - used : 0;
}

/// Every cgroup from this process's own up to the root can limit it.
uint64_t leftInCgroups() {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const fs::path root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      const auto left = unified ? leftIn(root / group, "memory.max", "memory.current", "")
                                : leftIn(root / group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_");
      least = std::min(least, left.value_or(least));
      if (group.empty()) break;
    }
  }
  return least;
}

} // namespace

Result<Region> Region::reserve(uint64_t bytes, const std::string& what) {
  Region region;
  if (bytes == 0) return region;
  void* const at = bytes > std::numeric_limits<size_t>::max() / 2
                       ? MAP_FAILED
                       : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return Error{ErrorKind::OutOfMemory, "the system refused " + std::to_string(bytes) + " bytes for " + what, what};
  region.data_ = static_cast<std::byte*>(at);
  region.bytes_ = bytes;
  return region;
}

Region::~Region() {
  if (data_) munmap(data_, bytes_);
}

uint64_t availableMemory() {
  const uint64_t kibibytes = field("/proc/meminfo", "MemAvailable:").value_or(0);
  return std::min(kibibytes * 1024, leftInCgroups());
}

} // namespace mashbox::cpu
