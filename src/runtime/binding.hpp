#pragma once
// Which accelerator each rank computes on: by what every rank of a host sees, whatever launcher and visibility settings
// brought it about. Called by train before it makes a rank's Exec; the choice itself is a pure function.
#include "base/types.hpp"
#include "comm/comm.hpp"

#include <string>
#include <vector>

namespace soybean::runtime {

/// What one rank sees: its host and the identities (the same in all processes of a host) of its visible accelerators.
struct Visible {
  std::string host;
  std::vector<std::string> devices;
  std::string fault = {}; ///< why it sees none, where that is known (device/devices.hpp: driver_fault)
};

/// Per rank, the index into its visible accelerators: rank after rank takes, of those it sees, the first one that no
/// rank of its host has, else one whose rank can go over to another, else shares the first one that the fewest have. So
/// N ranks of a host that see N accelerators get one each in order, a rank that sees one gets that, and ranks share
/// only where they must. Throws Error where a rank sees none, or where ranks share one and `sharing` is false.
std::vector<int> bind_devices(const std::vector<Visible>& ranks, bool sharing);

struct BindingInput {
  std::string device = "auto"; ///< run.device: "auto", "cpu" or "gpu"
  bool sharing = false;        ///< run.share_devices
  DType precision = DType::f32;
  bool tf32 = false; ///< train.precision = "tf32", refused on the host
};

/// The accelerator of this rank, -1 for the host: fp64 runs its reference kernels on the host, everything else on what
/// the program was built for. Collective. Throws Error, the same on all ranks, when that cannot be.
int choose_device(comm::Comm& comm, const BindingInput& input);

} // namespace soybean::runtime
