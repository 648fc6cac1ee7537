#include "cpu/cores.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace mashbox::cpu {
namespace {

using std::filesystem::path;

std::string readText(const path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<double> ratio(const std::string& quota, const std::string& period) {
  std::istringstream first(quota), second(period);
  double numerator = 0, denominator = 0;
  if (!(first >> numerator) || !(second >> denominator) || numerator <= 0 || denominator <= 0) return std::nullopt;
  return numerator / denominator;
}

std::optional<double> quotaV2(const path& group) {
  std::istringstream in(readText(group / "cpu.max"));
  std::string quota, period;
  in >> quota >> period;
  return ratio(quota, period);
}

std::optional<double> quotaV1(const path& group) { return ratio(readText(group / "cpu.cfs_quota_us"), readText(group / "cpu.cfs_period_us")); }

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) { return a && b ? std::min(a, b) : a ? a : b; }

/// True if a comma-separated list has the word.
bool lists(std::string_view list, std::string_view word) {
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

} // namespace

std::optional<double> cgroupQuota(const path& root, std::string_view membership) {
  std::optional<double> quota;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) { // hierarchy:controllers:/path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && !lists(controllers, "cpu")) continue;
    const path mount = v2 ? root : root / "cpu";
    for (path group = path(line.substr(second + 1)).relative_path().lexically_normal();; group = group.parent_path()) {
      quota = smaller(quota, (v2 ? quotaV2 : quotaV1)(mount / group));
      if (group.empty() || group == ".") break;
    }
  }
  return quota;
}

unsigned availableCores() {
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  if (const auto quota = cgroupQuota("/sys/fs/cgroup", readText("/proc/self/cgroup")))
    cores = std::min(cores, std::max(1u, unsigned(std::ceil(std::min(*quota, 1e6)))));
#endif
  return cores;
}

} // namespace mashbox::cpu
