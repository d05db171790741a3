#include "comm/comm.hpp"

#include "base/error.hpp"
#include "comm/accelerator.hpp"
#include "comm/hierarchical.hpp"
#include "comm/mpi.hpp"
#include "comm/mpi_device.hpp"
#include "comm/progressing.hpp"
#include "comm/staged.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace soybean::comm {

namespace {

template<class T>
std::vector<T> gather_values(Comm& comm, T value) {
  const std::vector<std::byte> bytes = comm.gather_all(std::as_bytes(std::span(&value, 1)));
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template<class T>
T sum_of(Comm& comm, T value) {
  T total = 0;
  for (T v : gather_values(comm, value)) total += v;
  return total;
}

template<class T>
T max_of(Comm& comm, T value) {
  const std::vector<T> values = gather_values(comm, value);
  return *std::max_element(values.begin(), values.end());
}

} // namespace

void Comm::stalled(Token token) {
  throw Bug(fmt::format("comm: token {} can not stall", token));
}

double sum(Comm& comm, double value) {
  return sum_of(comm, value);
}

std::int64_t sum(Comm& comm, std::int64_t value) {
  return sum_of(comm, value);
}

double max(Comm& comm, double value) {
  return max_of(comm, value);
}

std::int64_t max(Comm& comm, std::int64_t value) {
  return max_of(comm, value);
}

std::string broadcast_text(Comm& comm, const std::string& text, int root) {
  std::string result = text;
  std::int64_t bytes = static_cast<std::int64_t>(text.size());
  comm.broadcast(&bytes, sizeof bytes, root);
  result.resize(static_cast<std::size_t>(bytes));
  comm.broadcast(result.data(), bytes, root);
  return result;
}

namespace {

/// Hosts numbered in the order in which they first appear.
std::vector<int> numbered(const std::vector<std::string>& names, int size) {
  std::vector<int> hosts(names.empty() ? static_cast<std::size_t>(size) : 0);
  std::vector<std::string> seen;
  for (const std::string& name : names) {
    hosts.push_back(static_cast<int>(std::find(seen.begin(), seen.end(), name) - seen.begin()));
    if (hosts.back() == std::ssize(seen)) seen.push_back(name);
  }
  return hosts;
}

std::unique_ptr<Comm> make_mpi(const Place& place, int size, const StagedOptions& options = {}) {
  auto mpi = std::make_unique<MpiComm>(MpiOptions{.hosts = numbered(place.hosts, size)});
  if (place.device < 0) return mpi;
  return std::make_unique<StagedComm>(std::move(mpi), options);
}

/// MPI alone: nothing else uses the accelerator's links meanwhile, so MPI may.
std::unique_ptr<Comm> make_only_mpi(const Place& place, int size) {
  const bool direct = place.device >= 0 && place.device_messages && exchanges_device_memory(place.device);
  return make_mpi(place, size, {.device_exchanges = direct});
}

std::unique_ptr<Comm> make_library(const Place& place, int size) {
  auto mpi = std::make_unique<MpiComm>(MpiOptions{.library = true, .hosts = numbered(place.hosts, size)});
  if (place.device < 0) return mpi;
  return std::make_unique<StagedComm>(std::move(mpi));
}

/// NCCL's or the like's control traffic goes to MPI.
std::unique_ptr<Comm> make_accelerated(const Place& place, int size) {
  if (place.device < 0) return make_mpi(place, size);
  return make_accelerator_comm(make_mpi({.hosts = place.hosts}, size), place);
}

bool accelerated(const Place& place, int size) {
  if (place.device < 0 || accelerator_comm().empty()) return false;
  return !devices_shared(*make_mpi({}, size), place);
}

std::unique_ptr<Comm> make_auto(const Place& place, int size) {
  return accelerated(place, size) ? make_accelerated(place, size) : make_only_mpi(place, size);
}

std::unique_ptr<Comm> make_hierarchical(const Place& place, int size) {
  const std::vector<int> hosts = numbered(place.hosts, size);
  Halves halves{.inside = nullptr, .between = make_mpi(place, size), .after = nullptr};
  if (accelerated(place, size)) {
    halves.inside = make_accelerated(place, size);
  } else {
    halves.inside = make_mpi(place, size);
    halves.after = make_mpi(place, size);
  }
  return std::make_unique<HierarchicalComm>(std::move(halves), hosts);
}

struct Row {
  std::string name;
  std::unique_ptr<Comm> (*make)(const Place& place, int size);
};

std::vector<Row> rows() {
  std::vector<Row> table{
      {"auto", make_auto}, {"mpi", make_only_mpi}, {"mpi_library", make_library}, {"hierarchical", make_hierarchical}};
  if (!accelerator_comm().empty()) table.push_back({accelerator_comm(), make_accelerated});
  return table;
}

bool any_thread_may_call_mpi() {
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level), "MPI_Query_thread");
  return level >= MPI_THREAD_SERIALIZED;
}

[[noreturn]] void refuse(const std::string& name, const std::vector<Row>& table) {
  std::string known;
  for (const Row& row : table) known += (known.empty() ? "" : ", ") + row.name;
  Error error(fmt::format("comm: back end, got \"{}\" expected one that this build has: {}. {}", name, known,
                          name == "nccl" ? "NCCL needs a build with CUDA" : "See the README on parallel.comm"));
  error.mark_on_all_ranks();
  throw error;
}

} // namespace

std::unique_ptr<Comm> make_comm(const std::string& name, const Place& place) {
  const std::vector<Row> table = rows();
  const auto row = std::find_if(table.begin(), table.end(), [&](const Row& r) { return r.name == name; });
  if (row == table.end()) refuse(name, table);
  int size = 1;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  ensure(place.hosts.empty() || std::ssize(place.hosts) == size, "one host per rank");
  if (size == 1) return make_self_comm();
  std::unique_ptr<Comm> comm = row->make(place, size);
  if (place.device >= 0 || !any_thread_may_call_mpi()) return comm; // accelerators' transfers need nobody
  return std::make_unique<ProgressingComm>(std::move(comm));
}

} // namespace soybean::comm
