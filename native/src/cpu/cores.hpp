#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace mashbox::cpu {

/// Cores this process may use: affinity, then the cgroup's CPU quota, rounded up; at least 1.
unsigned availableCores();

/// The tightest CPU quota, in cores, on the way from this process's cgroup up to the root (v2 `cpu.max`, v1 `cpu.cfs_quota_us`);
/// none where nothing limits it. `membership` is the text of /proc/self/cgroup, `root` the mount point (/sys/fs/cgroup).
std::optional<double> cgroupQuota(const std::filesystem::path& root, std::string_view membership);

} // namespace mashbox::cpu
