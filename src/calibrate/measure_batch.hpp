#pragma once
// What steps take beside their programs: reading a batch on a thread of its own and giving it to the program. Called by
// calibrate.cpp.
#include "calibrate/fit.hpp"
#include "comm/comm.hpp"
#include "device/exec.hpp"
#include "machine/machine.hpp"

#include <vector>

namespace soybean::calibrate {

/// Batches of synthetic samples of two sizes: how much longer steps with them take than the program alone, medians of
/// the slowest rank. Every rank does the same at the same time. Collective.
std::vector<BatchSample> measure_batches(const device::Exec& exec, comm::Comm& comm);

} // namespace soybean::calibrate
