#pragma once
// The Kokkos execution space in which an Exec's kernels are queued. Included by device/rows.hpp alone.
#include "device/exec.hpp"

#include <Kokkos_Core.hpp>

namespace soybean::device {

/// Queues in exec.stream(). Only for an Exec on an accelerator.
const Kokkos::DefaultExecutionSpace& space(const Exec& exec);

} // namespace soybean::device
