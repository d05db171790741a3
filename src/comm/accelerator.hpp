#pragma once
// The collectives of an accelerator's own library, chosen at link time: comm/host has none, comm/cuda has NCCL. Called
// by make_comm.
#include "comm/comm.hpp"

#include <memory>
#include <string>

namespace soybean::comm {

/// The back end this build has: "nccl", or "" where it has none.
std::string accelerator_comm();

/// Whether two ranks are on one accelerator, which such a back end refuses. All ranks call it; none is on the host.
bool devices_shared(Comm& control, const Place& place);

/// Collectives on buffers in the accelerator's memory; those of host Execs and control traffic go to `control`. Throws
/// Error on all ranks where two of them share an accelerator, Bug in builds without.
std::unique_ptr<Comm> make_accelerator_comm(std::unique_ptr<Comm> control, const Place& place);

} // namespace soybean::comm
