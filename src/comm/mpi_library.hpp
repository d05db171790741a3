#pragma once
// Reductions by MPI's own non-blocking collectives. Hides the communicators they need, one per group, and the 32-bit
// counts. Called by MpiComm for the back end "mpi_library".
#include "comm/comm.hpp"
#include "comm/mpi_check.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace soybean::comm {

/// The MPI calls of one collective. Must not move while they are under way; reused, so that its memory is kept.
struct LibraryCalls {
  std::vector<MPI_Request> requests; ///< empty: done
  std::vector<int> counts;           ///< MPI reads them until it is done
  std::vector<std::byte> aside;      ///< a result that may not be written in place
};

class MpiLibrary {
public:
  /// Starts an all_reduce or reduce_scatter. The first one of a group also makes its communicator, which waits for all
  /// members. `most` bounds the elements of one MPI call.
  void start(const Collective& collective, int rank, std::int64_t most, LibraryCalls& calls);
  /// True if this call completed them.
  static bool complete(const Collective& collective, LibraryCalls& calls);

private:
  MPI_Comm communicator(const std::vector<int>& group);
  std::map<std::vector<int>, OwnedComm> communicators_;
};

} // namespace soybean::comm
