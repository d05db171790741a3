// The blocking helpers of MpiComm: control traffic, on a communicator of its own. All under the same watchdog.
#include "base/error.hpp"
#include "comm/mpi.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace soybean::comm {

namespace {

constexpr std::int64_t part = 1 << 30; // bytes per MPI call, whose counts are 32 bits

template<class F>
void for_parts(std::int64_t bytes, const F& f) {
  for (std::int64_t at = 0; at < bytes; at += part) f(at, static_cast<int>(std::min(part, bytes - at)));
}

} // namespace

void MpiComm::finish(MPI_Request& request, const std::string& what, const std::string& whom) {
  const double begin = seconds_now();
  double moved = begin;
  Backoff backoff;
  for (int done = 0; !done;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done) return;
    if (advance_everything()) {
      moved = seconds_now();
      backoff.reset();
    } else {
      if (seconds_now() - moved > stall_seconds)
        fail_running(
            "comm: {} stalled on rank {}, got no progress for {:g} s, expected {}. Look at what the other ranks "
            "last reported: one may have died, hang or lag behind",
            what, rank_, stall_seconds, whom);
      backoff.pause();
    }
  }
}

void MpiComm::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(control_.get(), &request), "MPI_Ibarrier");
  finish(request, "barrier", "all ranks to come");
}

void MpiComm::broadcast(void* data, std::int64_t bytes, int root) {
  ensure(0 <= root && root < size_, "broadcast: no such root");
  for_parts(bytes, [&](std::int64_t at, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(static_cast<std::byte*>(data) + at, count, MPI_BYTE, root, control_.get(), &request),
          "MPI_Ibcast");
    finish(request, "broadcast", fmt::format("rank {} to send", root));
    if (rank_ != root) counters_.control_bytes += count;
  });
}

std::vector<std::byte> MpiComm::gather_all(std::span<const std::byte> mine) {
  const std::int64_t bytes = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(size_));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&bytes, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, control_.get(), &request),
        "MPI_Iallgather");
  finish(request, "gather", "all ranks to send");
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  ensure(total <= std::numeric_limits<int>::max(), "gather_all is for small things");
  const std::vector<int> counts(sizes.begin(), sizes.end());
  std::vector<int> offsets(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
  std::vector<std::byte> all(static_cast<std::size_t>(total));
  check(MPI_Iallgatherv(mine.data(), static_cast<int>(bytes), MPI_BYTE, all.data(), counts.data(), offsets.data(),
                        MPI_BYTE, control_.get(), &request),
        "MPI_Iallgatherv");
  finish(request, "gather", "all ranks to send");
  counters_.control_bytes += total - bytes;
  return all;
}

void MpiComm::send(const void* data, std::int64_t bytes, int peer, int tag) {
  ensure(0 <= peer && peer < size_ && peer != rank_, "send: no such peer");
  for_parts(bytes, [&](std::int64_t at, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(static_cast<const std::byte*>(data) + at, count, MPI_BYTE, peer, tag, control_.get(), &request),
          "MPI_Isend");
    finish(request, "send", fmt::format("rank {} to take a message", peer));
  });
}

void MpiComm::receive(void* data, std::int64_t bytes, int peer, int tag) {
  ensure(0 <= peer && peer < size_ && peer != rank_, "receive: no such peer");
  for_parts(bytes, [&](std::int64_t at, int count) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(static_cast<std::byte*>(data) + at, count, MPI_BYTE, peer, tag, control_.get(), &request),
          "MPI_Irecv");
    finish(request, "receive", fmt::format("a message from rank {}", peer));
    counters_.control_bytes += count;
  });
}

} // namespace soybean::comm
