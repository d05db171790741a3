#pragma once
// What all MPI code shares: return codes to errors, owned communicators, waiting politely. Called by comm alone.
#include "base/handles.hpp"

#include <mpi.h>

#include <chrono>
#include <source_location>

namespace soybean::comm {

/// Throws Error(failed) with MPI's own text, the call and the source line unless `code` is MPI_SUCCESS.
void check(int code, const char* call, std::source_location where = std::source_location::current());

struct CommTraits {
  using Handle = MPI_Comm;
  static Handle null() { return MPI_COMM_NULL; }
  static void release(Handle handle) noexcept;
};
using OwnedComm = Unique<CommTraits>;

/// A duplicate of MPI_COMM_WORLD that returns errors instead of ending the program (collective).
OwnedComm duplicate_world();

double seconds_now(); ///< a steady clock

/// Waits a little longer each time there is nothing to do: gives the core away at once, because there may be more ranks
/// than cores, and sleeps after about a millisecond.
class Backoff {
public:
  void pause();
  void reset() { idle_ = 0; }

private:
  int idle_ = 0;
};

} // namespace soybean::comm
