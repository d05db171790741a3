#pragma once
// Measures the machine at hand: what its kernels and links reach, as a machine file. Called by soybean_calibrate.
#include "comm/comm.hpp"
#include "device/exec.hpp"
#include "machine/machine.hpp"

#include <string>
#include <vector>

namespace soybean::calibrate {

struct Calibration {
  machine::Machine machine;
  std::vector<std::string> notes; ///< what was measured, what is a guess
};

/// The ranks that compute on `exec` and exchange by `comm`. `hosts`: the host of each rank. Collective; takes less than
/// a minute. Throws Error (see measure_links).
Calibration calibrate(const device::Exec& exec, comm::Comm& comm, const std::vector<std::string>& hosts);

} // namespace soybean::calibrate
