#include "runtime/host.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

namespace soybean::runtime {
namespace {

/// The number in a one-line file; `otherwise` when there is none ("max").
std::int64_t read_number(const std::filesystem::path& path, std::int64_t otherwise) {
  std::ifstream in(path);
  std::int64_t value = 0;
  return in >> value ? value : otherwise;
}

/// An entry of /proc/meminfo, in bytes.
std::int64_t memory_entry(std::string_view name) {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  std::int64_t kilobytes = 0;
  while (in >> key >> kilobytes) {
    std::getline(in, unit);
    if (key == name) return kilobytes * 1024;
  }
  return std::numeric_limits<std::int64_t>::max();
}

/// The least that this process's control group (version 2) and those above it allow, or (`left`) leave of that.
std::int64_t control_group_memory(bool left) {
  constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  std::filesystem::path group = root;
  while (std::getline(in, line))
    if (line.rfind("0::/", 0) == 0) group = root / line.substr(4);
  std::int64_t least = unlimited;
  for (;; group = group.parent_path()) {
    const std::int64_t limit = read_number(group / "memory.max", unlimited);
    const std::int64_t used = left ? read_number(group / "memory.current", 0) : 0;
    if (limit != unlimited) least = std::min(least, std::max<std::int64_t>(limit - used, 0));
    if (group == root || !group.has_relative_path()) return least;
  }
}

std::string type_name(std::int64_t magic) {
  static constexpr std::array<std::pair<std::int64_t, const char*>, 14> known = {{{0xEF53, "ext4"},
                                                                                  {0x58465342, "xfs"},
                                                                                  {0x9123683E, "btrfs"},
                                                                                  {0x2FC12FC1, "zfs"},
                                                                                  {0x01021994, "tmpfs"},
                                                                                  {0x858458F6, "ramfs"},
                                                                                  {0x794C7630, "overlay"},
                                                                                  {0x6969, "nfs"},
                                                                                  {0xFF534D42, "cifs"},
                                                                                  {0x65735546, "fuse"},
                                                                                  {0x0BD00BD0, "lustre"},
                                                                                  {0x47504653, "gpfs"},
                                                                                  {0x19830326, "beegfs"},
                                                                                  {0x00C36400, "ceph"}}};
  for (const auto& [value, name] : known)
    if (value == magic) return name;
  return fmt::format("type {:x}", static_cast<std::uint64_t>(magic));
}

} // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

Cores bound_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cores cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores.set(0);
  for (int core = 0; core < std::min(max_cores, CPU_SETSIZE); ++core)
    if (CPU_ISSET(core, &set)) cores.set(core);
  return cores;
}

bool bind_to(const Cores& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = 0; core < std::min(max_cores, CPU_SETSIZE); ++core)
    if (cores[static_cast<std::size_t>(core)]) CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

std::int64_t free_memory() {
  return std::min(memory_entry("MemAvailable:"), control_group_memory(true));
}

std::int64_t total_memory() {
  return std::min(memory_entry("MemTotal:"), control_group_memory(false));
}

FileSystem file_system(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path at = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::exists(at, ignored) && at.has_relative_path()) at = at.parent_path();
  struct statfs kind {};
  struct statvfs space {};
  if (statfs(at.c_str(), &kind) != 0 || statvfs(at.c_str(), &space) != 0) return {.type = "unknown"};
  const auto block = static_cast<std::int64_t>(space.f_frsize);
  return {.type = type_name(static_cast<std::int64_t>(kind.f_type) & 0xFFFFFFFF),
          .free_bytes = static_cast<std::int64_t>(space.f_bavail) * block,
          .total_bytes = static_cast<std::int64_t>(space.f_blocks) * block};
}

} // namespace soybean::runtime
