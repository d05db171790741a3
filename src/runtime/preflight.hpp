#pragma once
// The report before training: ranks, hosts, cores, memory, MPI, file system; each known fault with its line of advice.
// `gather_preflight` asks all ranks; everything after is plain data, judged by `advise`.
#include "runtime/context.hpp"
#include "runtime/host.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::runtime {

/// What one rank says of itself.
struct RankFacts {
  std::string host;
  Cores cores; ///< it may run on
  int threads = 1;
  std::int64_t free_memory = 0;  ///< of its host
  std::int64_t total_memory = 0; ///< of its host
  std::int64_t needed_memory = 0;
  std::string device;                   ///< the GPU it computes on, with its identity; empty: the host
  std::int64_t free_device_memory = 0;  ///< of that GPU
  std::int64_t total_device_memory = 0; ///< of that GPU
};

struct HostFacts {
  std::string name;
  int ranks = 0;
  int cores = 0; ///< that any of its ranks may run on
  std::int64_t free_memory = 0;
  std::int64_t total_memory = 0;
  std::int64_t needed_memory = 0; ///< arenas of all its ranks
  int threads = 0;                ///< of all its ranks
};

struct Preflight {
  std::vector<RankFacts> ranks;          ///< by rank
  std::vector<HostFacts> hosts;          ///< in the order they first appear
  std::string mpi;                       ///< library and version
  std::string accelerator;               ///< driver and library versions; empty: none in use
  std::int64_t free_memory_per_rank = 0; ///< the least: a host's free memory over its ranks
  std::string run_dir;
  FileSystem disk; ///< of run_dir, as rank 0 sees it
  std::vector<std::string> advice;
};

struct PreflightInput {
  int threads = 1;                ///< of this rank
  std::int64_t needed_memory = 0; ///< this rank's arena; 0: not known yet
  std::string run_dir = ".";
  std::string mpi; ///< comm::mpi_library_version()
  int device = -1; ///< of this rank: needed_memory is taken from it; -1: the host
};

/// Collective; every rank gets the same facts.
Preflight gather_preflight(comm::Comm& comm, const PreflightInput& input);

/// Hosts, least memory and advice from the ranks' facts and the disk.
void judge(Preflight& facts);

/// Throws Error where the ranks of a host, or those on a GPU, need more memory than that has in all. What is only taken
/// by others now is a matter of advice.
void check_memory(const Preflight& facts);

std::string to_string(const Preflight& facts);

/// The report of a run under MPI, for a rank that is about to allocate `memory_bytes`. Collective; the same text, or
/// the same Error of check_memory, everywhere.
std::string preflight(const Context& context, std::int64_t memory_bytes, const std::string& run_dir);

} // namespace soybean::runtime
