#include "comm/mpi_library.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace soybean::comm {

namespace {

MPI_Datatype mpi_type(DType type) {
  switch (type) {
  case DType::f32:
    return MPI_FLOAT;
  case DType::f64:
    return MPI_DOUBLE;
  case DType::i32:
    return MPI_INT32_T;
  }
  throw Bug("unknown DType");
}

struct GroupTraits {
  using Handle = MPI_Group;
  static Handle null() { return MPI_GROUP_NULL; }
  static void release(Handle handle) noexcept { MPI_Group_free(&handle); }
};

std::byte* at_element(void* data, std::int64_t index, DType type) {
  return static_cast<std::byte*>(data) + index * size_of(type);
}

/// Calls f(begin, count) for the pieces of at most `most` of n elements.
template<class F>
void for_pieces(std::int64_t n, std::int64_t most, const F& f) {
  for (std::int64_t begin = 0; begin < n; begin += most) f(begin, static_cast<int>(std::min(most, n - begin)));
}

void all_reduce(const Collective& c, MPI_Comm comm, std::int64_t most, LibraryCalls& calls) {
  for_pieces(c.counts[0], most, [&](std::int64_t begin, int count) {
    const void* from = c.send == c.recv ? MPI_IN_PLACE : at_element(c.send, begin, c.dtype);
    MPI_Request& request = calls.requests.emplace_back(MPI_REQUEST_NULL);
    check(MPI_Iallreduce(from, at_element(c.recv, begin, c.dtype), count, mpi_type(c.dtype), MPI_SUM, comm, &request),
          "MPI_Iallreduce");
  });
}

/// One MPI_Ireduce per member and piece, for counts of any size.
void reduce_by_member(const Collective& c, int me, MPI_Comm comm, std::int64_t most, LibraryCalls& calls) {
  std::int64_t first = 0;
  for (int member = 0; member < static_cast<int>(c.counts.size()); ++member) {
    for_pieces(c.counts[member], most, [&](std::int64_t begin, int count) {
      const void* from = at_element(c.send, first + begin, c.dtype);
      void* to = member == me ? at_element(c.recv, begin, c.dtype) : nullptr;
      if (from == to) from = MPI_IN_PLACE;
      MPI_Request& request = calls.requests.emplace_back(MPI_REQUEST_NULL);
      check(MPI_Ireduce(from, to, count, mpi_type(c.dtype), MPI_SUM, member, comm, &request), "MPI_Ireduce");
    });
    first += c.counts[member];
  }
}

void reduce_scatter(const Collective& c, int me, MPI_Comm comm, std::int64_t most, LibraryCalls& calls) {
  const std::int64_t before = std::accumulate(c.counts.begin(), c.counts.begin() + me, std::int64_t{0});
  const std::int64_t total = std::accumulate(c.counts.begin() + me, c.counts.end(), before);
  if (total > most) return reduce_by_member(c, me, comm, most, calls);
  calls.counts.assign(c.counts.begin(), c.counts.end());
  void* to = c.recv;
  if (to == at_element(c.send, before, c.dtype)) { // not allowed by MPI, and not all members need be in this case
    calls.aside.resize(static_cast<std::size_t>(c.counts[me] * size_of(c.dtype)));
    to = calls.aside.data();
  }
  MPI_Request& request = calls.requests.emplace_back(MPI_REQUEST_NULL);
  check(MPI_Ireduce_scatter(c.send, to, calls.counts.data(), mpi_type(c.dtype), MPI_SUM, comm, &request),
        "MPI_Ireduce_scatter");
}

} // namespace

void MpiLibrary::start(const Collective& collective, int rank, std::int64_t most, LibraryCalls& calls) {
  calls.requests.clear();
  calls.aside.clear();
  if (collective.group.size() == 1) return;
  MPI_Comm comm = communicator(collective.group);
  if (collective.kind == Kind::all_reduce) return all_reduce(collective, comm, most, calls);
  const auto me = std::find(collective.group.begin(), collective.group.end(), rank) - collective.group.begin();
  reduce_scatter(collective, static_cast<int>(me), comm, most, calls);
}

bool MpiLibrary::complete(const Collective& collective, LibraryCalls& calls) {
  if (calls.requests.empty()) return false;
  int done = 0;
  check(MPI_Testall(static_cast<int>(calls.requests.size()), calls.requests.data(), &done, MPI_STATUSES_IGNORE),
        "MPI_Testall");
  if (!done) return false;
  calls.requests.clear();
  if (!calls.aside.empty()) std::memcpy(collective.recv, calls.aside.data(), calls.aside.size());
  return true;
}

MPI_Comm MpiLibrary::communicator(const std::vector<int>& group) {
  OwnedComm& owned = communicators_[group];
  if (owned) return owned.get();
  MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  const Unique<GroupTraits> world_owner(world);
  check(MPI_Group_incl(world, static_cast<int>(group.size()), group.data(), &members), "MPI_Group_incl");
  const Unique<GroupTraits> members_owner(members);
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &comm), "MPI_Comm_create_group");
  owned = OwnedComm(comm);
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

} // namespace soybean::comm
