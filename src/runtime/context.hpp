#pragma once
// What a rank runs in: its execution space, its communicator and its place in the mesh. Passed to everything in
// runtime; `thread_count` decides how many threads the execution space gets.
#include "comm/comm.hpp"
#include "device/exec.hpp"
#include "tiling/mesh.hpp"

namespace soybean::runtime {

/// References must outlive whatever is made from it. comm.size() == tiling::ranks(mesh).
struct Context {
  const device::Exec& exec;
  comm::Comm& comm;
  tiling::Mesh mesh;
  int rank = 0;
  bool record_steps = true; ///< on accelerators, where the back end allows it
};

/// Threads for this rank's kernels: `requested` if >= 1, otherwise the cores its binding leaves it, shared evenly with
/// the ranks of this host bound to any of them, so that ranks × threads never exceed the cores; at least 1. Collective.
int thread_count(int requested, comm::Comm& comm);

} // namespace soybean::runtime
