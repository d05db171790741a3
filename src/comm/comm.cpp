#include "comm/comm.hpp"

#include "base/error.hpp"
#include "comm/mpi.hpp"

#include <algorithm>
#include <cstring>

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

std::unique_ptr<Comm> make_comm(const std::string& name) {
  if (name != "mpi" && name != "mpi_library")
    fail("comm: back end, got \"{}\" expected \"mpi\" or \"mpi_library\". See the README on parallel.comm", name);
  int size = 1;
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (size == 1) return make_self_comm();
  return std::make_unique<MpiComm>(MpiOptions{.library = name == "mpi_library"});
}

} // namespace soybean::comm
