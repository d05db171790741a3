#include "runtime/preflight.hpp"

#include "base/error.hpp"
#include "comm/mpi_device.hpp"
#include "comm/mpi_session.hpp"
#include "device/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <type_traits>

namespace soybean::runtime {
namespace {

/// RankFacts and the disk as bytes, to be gathered.
struct Record {
  char host[256] = {};
  unsigned char cores[max_cores / 8] = {};
  std::int64_t threads = 1, free_memory = 0, total_memory = 0, needed_memory = 0;
  char device[160] = {};
  std::int64_t device_free = 0, device_total = 0;
  char disk_type[32] = {};
  std::int64_t disk_free = 0, disk_total = 0;
};
static_assert(std::is_trivially_copyable_v<Record>);

void put(std::span<char> to, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), to.size() - 1), to.begin());
}

std::vector<Record> gather(comm::Comm& comm, const Record& mine) {
  const std::vector<std::byte> bytes = comm.gather_all(std::as_bytes(std::span(&mine, 1)));
  ensure(bytes.size() == sizeof(Record) * static_cast<std::size_t>(comm.size()), "preflight: records of all ranks");
  std::vector<Record> all(comm.size());
  std::memcpy(static_cast<void*>(all.data()), bytes.data(), bytes.size());
  return all;
}

Record own_record() {
  Record record;
  put(record.host, host_name());
  const Cores cores = bound_cores();
  for (int c = 0; c < max_cores; ++c)
    if (cores[c]) record.cores[c / 8] |= static_cast<unsigned char>(1u << (c % 8));
  return record;
}

RankFacts facts_of(const Record& record) {
  RankFacts facts;
  facts.host = record.host;
  for (int c = 0; c < max_cores; ++c) facts.cores[c] = (record.cores[c / 8] >> (c % 8)) & 1u;
  facts.threads = static_cast<int>(record.threads);
  facts.free_memory = record.free_memory;
  facts.total_memory = record.total_memory;
  facts.needed_memory = record.needed_memory;
  facts.device = record.device;
  facts.free_device_memory = record.device_free;
  facts.total_device_memory = record.device_total;
  return facts;
}

std::string memory(std::int64_t bytes) {
  return bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6)
                               : fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9);
}

std::string counted(std::int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

void list_hosts(Preflight& facts) {
  std::vector<Cores> cores;
  for (const RankFacts& rank : facts.ranks) {
    const auto found = std::find_if(facts.hosts.begin(), facts.hosts.end(),
                                    [&](const HostFacts& host) { return host.name == rank.host; });
    const std::size_t h = static_cast<std::size_t>(found - facts.hosts.begin());
    if (found == facts.hosts.end()) {
      facts.hosts.push_back({.name = rank.host, .free_memory = rank.free_memory, .total_memory = rank.total_memory});
      cores.emplace_back();
    }
    HostFacts& host = facts.hosts[h];
    ++host.ranks;
    cores[h] |= rank.cores;
    host.cores = static_cast<int>(cores[h].count());
    host.threads += rank.threads;
    host.free_memory = std::min(host.free_memory, rank.free_memory);
    host.total_memory = std::min(host.total_memory, rank.total_memory);
    if (rank.device.empty()) host.needed_memory += rank.needed_memory;
  }
}

void advise_host(const HostFacts& host, std::vector<std::string>& advice) {
  if (host.threads > host.cores)
    advice.push_back(fmt::format("host {}: {} ranks use {} threads on {} cores. Start fewer ranks per host or set "
                                 "run.threads lower",
                                 host.name, host.ranks, host.threads, host.cores));
  if (host.ranks > 1 && host.cores == 1)
    advice.push_back(fmt::format("host {}: all {} ranks are bound to one core. Pass --bind-to none to mpirun or give "
                                 "srun --cpus-per-task",
                                 host.name, host.ranks));
  if (host.needed_memory > host.free_memory)
    advice.push_back(fmt::format("host {}: {} free, {} needed. Use more hosts or a smaller data.batch", host.name,
                                 memory(host.free_memory), memory(host.needed_memory)));
  else if (host.needed_memory > host.free_memory / 10 * 9)
    advice.push_back(fmt::format("host {}: {} of {} free memory needed. Close other programs or use more hosts",
                                 host.name, memory(host.needed_memory), memory(host.free_memory)));
}

void advise_shared_cores(const Preflight& facts, std::vector<std::string>& advice) {
  for (std::size_t a = 0; a < facts.ranks.size(); ++a)
    for (std::size_t b = a + 1; b < facts.ranks.size(); ++b) {
      const RankFacts &x = facts.ranks[a], &y = facts.ranks[b];
      if (x.host != y.host || x.cores.count() != 1 || x.cores != y.cores) continue;
      const auto host =
          std::find_if(facts.hosts.begin(), facts.hosts.end(), [&](const HostFacts& h) { return h.name == x.host; });
      if (host != facts.hosts.end() && host->cores == 1) continue; // said already
      advice.push_back(fmt::format("host {}: ranks {} and {} are bound to the same single core. Pass --bind-to core or "
                                   "--bind-to none to mpirun",
                                   x.host, a, b));
      return; // once
    }
}

struct DeviceMemory {
  std::int64_t needed = 0, free = 0, total = 0;
  int ranks = 0;
};

/// Of every GPU in use, by host and name.
std::map<std::pair<std::string, std::string>, DeviceMemory> device_memories(const Preflight& facts) {
  std::map<std::pair<std::string, std::string>, DeviceMemory> memories;
  for (const RankFacts& rank : facts.ranks) {
    if (rank.device.empty()) continue;
    DeviceMemory& device = memories[{rank.host, rank.device}];
    device.needed += rank.needed_memory;
    device.free = rank.free_device_memory;
    device.total = rank.total_device_memory;
    ++device.ranks;
  }
  return memories;
}

void advise_devices(const Preflight& facts, std::vector<std::string>& advice) {
  for (const auto& [where, bytes] : device_memories(facts))
    if (bytes.needed > bytes.free)
      advice.push_back(fmt::format("host {}, {}: {} free, {} needed. Use more ranks or a smaller data.batch",
                                   where.first, where.second, memory(bytes.free), memory(bytes.needed)));
}

void advise_disk(const Preflight& facts, std::vector<std::string>& advice) {
  const FileSystem& disk = facts.disk;
  if (disk.type == "tmpfs" || disk.type == "ramfs")
    advice.push_back(fmt::format("run directory {}: on {}, checkpoints take memory and do not survive the node. Set "
                                 "run.dir to a disk",
                                 facts.run_dir, disk.type));
  if (disk.total_bytes > 0 && disk.free_bytes < disk.total_bytes / 50)
    advice.push_back(fmt::format("run directory {}: {} of {} free. Make room, checkpoints need it", facts.run_dir,
                                 memory(disk.free_bytes), memory(disk.total_bytes)));
}

} // namespace

int thread_count(int requested, comm::Comm& comm) {
  const std::vector<Record> records = gather(comm, own_record()); // collective, whatever was requested
  if (requested >= 1) return requested;
  const RankFacts me = facts_of(records[comm.rank()]);
  int sharing = 0;
  for (const Record& record : records) {
    const RankFacts other = facts_of(record);
    if (other.host == me.host && (other.cores & me.cores).any()) ++sharing;
  }
  return std::max(1, static_cast<int>(me.cores.count()) / std::max(1, sharing));
}

Preflight gather_preflight(comm::Comm& comm, const PreflightInput& input) {
  Record mine = own_record();
  mine.threads = input.threads;
  mine.free_memory = free_memory();
  mine.total_memory = total_memory();
  mine.needed_memory = input.needed_memory;
  if (input.device >= 0) {
    const device::DeviceFacts facts = device::device_facts(input.device);
    put(mine.device, fmt::format("GPU {}, {} ({})", input.device, facts.name, facts.id));
    mine.device_free = facts.free;
    mine.device_total = facts.memory;
  }
  const FileSystem disk = file_system(input.run_dir);
  put(mine.disk_type, disk.type);
  mine.disk_free = disk.free_bytes;
  mine.disk_total = disk.total_bytes;
  const std::vector<Record> records = gather(comm, mine);
  Preflight facts;
  for (const Record& record : records) facts.ranks.push_back(facts_of(record));
  facts.mpi = input.mpi;
  if (input.device >= 0) facts.accelerator = device::accelerator_versions();
  facts.run_dir = input.run_dir;
  facts.disk = {records[0].disk_type, records[0].disk_free, records[0].disk_total};
  judge(facts);
  return facts;
}

void judge(Preflight& facts) {
  facts.hosts.clear();
  facts.advice.clear();
  list_hosts(facts);
  facts.free_memory_per_rank = std::numeric_limits<std::int64_t>::max();
  for (const HostFacts& host : facts.hosts) {
    facts.free_memory_per_rank = std::min(facts.free_memory_per_rank, host.free_memory / host.ranks);
    advise_host(host, facts.advice);
  }
  advise_shared_cores(facts, facts.advice);
  advise_devices(facts, facts.advice);
  advise_disk(facts, facts.advice);
}

void check_memory(const Preflight& facts) {
  for (const HostFacts& host : facts.hosts)
    if (host.needed_memory > host.total_memory)
      fail("host {}: memory, got {} needed by its {} expected at most {}, all it has. use a smaller data.batch, "
           "train.microbatches or more hosts",
           host.name, memory(host.needed_memory), counted(host.ranks, "rank"), memory(host.total_memory));
  for (const auto& [where, bytes] : device_memories(facts))
    if (bytes.needed > bytes.total)
      fail("host {}, {}: memory, got {} needed by {} expected at most {}, all it has. use a smaller data.batch, "
           "train.microbatches or more GPUs",
           where.first, where.second, memory(bytes.needed), counted(bytes.ranks, "rank"), memory(bytes.total));
}

std::string to_string(const Preflight& facts) {
  std::string text =
      fmt::format("{} on {}, {}\n", counted(std::ssize(facts.ranks), "rank"), counted(std::ssize(facts.hosts), "host"),
                  facts.mpi.empty() ? "without MPI" : facts.mpi);
  if (!facts.accelerator.empty()) text += facts.accelerator + '\n';
  for (const HostFacts& host : facts.hosts)
    text += fmt::format("  {}: {}, {}, {}, {} free{}\n", host.name, counted(host.ranks, "rank"),
                        counted(host.cores, "core"), counted(host.threads, "thread"), memory(host.free_memory),
                        host.needed_memory > 0 ? ", " + memory(host.needed_memory) + " needed" : "");
  for (std::size_t r = 0; r < facts.ranks.size(); ++r)
    if (const RankFacts& rank = facts.ranks[r]; !rank.device.empty())
      text += fmt::format("  rank {}: {}, {}, {} free, {} needed\n", r, rank.host, rank.device,
                          memory(rank.free_device_memory), memory(rank.needed_memory));
  text += fmt::format("run directory {}: {}, {} free\n", facts.run_dir, facts.disk.type, memory(facts.disk.free_bytes));
  for (const std::string& line : facts.advice) text += "advice: " + line + "\n";
  return text;
}

namespace {

std::string mpi_text(const device::Exec& exec) {
  if (!exec.on_device()) return comm::mpi_library_version();
  return comm::mpi_library_version() + (comm::mpi_takes_device_memory() ? ", takes" : ", does not take") +
         " GPU memory";
}

} // namespace

std::string preflight(const Context& context, std::int64_t memory_bytes, const std::string& run_dir) {
  const Preflight facts = gather_preflight(context.comm, {.threads = context.exec.threads(),
                                                          .needed_memory = memory_bytes,
                                                          .run_dir = run_dir,
                                                          .mpi = mpi_text(context.exec),
                                                          .device = context.exec.device()});
  try {
    check_memory(facts);
  } catch (Error& error) {
    error.mark_on_all_ranks();
    throw;
  }
  return to_string(facts);
}

} // namespace soybean::runtime
