#pragma once
// The messages one rank exchanges for one collective, in order, without any MPI: own schedules of point-to-point
// messages (ring, tree, pairwise). Called by the MPI back end, which only has to run a Schedule; tested without MPI.
#include "comm/comm.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace soybean::comm {

/// A message to receive. Receives are posted and processed in the order of the schedule.
struct Receive {
  int peer;                       ///< world rank
  std::byte* into;                ///< where the message, or the sum, goes
  const std::byte* own = nullptr; ///< if set: into = own + message, element by element (own may be into)
  std::int64_t bytes;
  std::int64_t after = 0; ///< number of this schedule's sends that must be complete before this is posted
};

/// A message to send. Sends are posted in the order of the schedule.
struct Send {
  int peer; ///< world rank
  const std::byte* from;
  std::int64_t bytes;
  std::int64_t after = 0; ///< number of this schedule's receives that must be processed before this is posted
};

/// What one rank does for one collective. Between two ranks, messages match in order.
struct Schedule {
  std::vector<Receive> receives;
  std::vector<Send> sends;
  void clear();
};

/// Sizes of messages, in bytes, multiples of 8. Reduced messages are staged, so `chunk` bounds the staging buffers and
/// lets step k + 1 of a ring begin before step k ends. `part` bounds all other messages (MPI counts are 32 bits).
/// All-reduces of at most `tree` bytes use a tree instead of a ring: log p instead of p steps, the same bytes.
struct MessageSizes {
  std::int64_t chunk = 4 << 20;
  std::int64_t part = 1 << 30;
  std::int64_t tree = 32 << 10;
};

/// Fills `out` (cleared first; its memory is reused) with what `rank` does for `collective`, and makes the local copies
/// that need no message: a group of one, an exchange with oneself. Sums are taken in an order that depends on the group
/// and the counts alone. Received bytes, summed over a group of p with local terms of b bytes: reduce_scatter (p-1)·b,
/// all_reduce 2(p-1)·b, whatever the counts. Throws Bug when `collective` is malformed.
///
/// reduce_scatter: ring. In step s = 0 … p-2 member m sends its sum so far of block m-1-s to m+1 and adds the one of
/// block m-2-s that it gets from m-1; in the end block m holds x[m+1] + x[m+2] + … + x[m].
/// all_reduce: the same on p nearly equal blocks, then the sums go round the ring once more. Small ones: a binomial
/// tree; member m adds its children m+1, m+2, m+4, … in this order, the root's sum goes down the same tree.
/// exchange: in order of distance (peer - rank) mod size, so that no rank is everybody's first.
void build_schedule(const Collective& collective, int rank, int size, const MessageSizes& sizes, Schedule& out);

/// Bytes that `rank` receives by the schedule: the nominal bytes where a library's own collective runs instead.
std::int64_t received_bytes(const Schedule& schedule);

} // namespace soybean::comm
