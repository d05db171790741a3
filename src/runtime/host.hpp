#pragma once
// What the operating system says about this rank's place: host, cores it is bound to, free memory, file systems. Hides
// /proc, cgroups and statfs; used by preflight and the thread count.
#include <bitset>
#include <cstdint>
#include <string>

namespace soybean::runtime {

constexpr int max_cores = 1024;
using Cores = std::bitset<max_cores>;

std::string host_name();
Cores bound_cores(); ///< hardware threads this process may run on
/// From now on the calling thread runs on these alone. False where the system does not let it.
bool bind_to(const Cores& cores);
/// Bytes a process of this host may still take: what the system calls available, or what the control groups (batch
/// jobs, containers) leave, whichever is less.
std::int64_t free_memory();
/// Bytes that all processes of this host may take at most: what it has built in, or what the control groups allow.
std::int64_t total_memory();

struct FileSystem {
  std::string type; ///< "ext4", "tmpfs", "lustre", …; "unknown" when there is no such directory
  std::int64_t free_bytes = 0, total_bytes = 0;
};
/// Of the nearest existing directory at or above `path`.
FileSystem file_system(const std::string& path);

} // namespace soybean::runtime
