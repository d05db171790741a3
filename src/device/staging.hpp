#pragma once
// Scratch of an accelerator in which data is brought into or out of physical order on its way to or from the host.
// Called by device/pack.cpp.
#include "device/exec.hpp"

#include <cstdint>

namespace soybean::device {

/// At least `bytes` bytes of exec's memory, one buffer per Exec, used in the order of its stream; throws Error when
/// there is no room. Kept for the next call.
void* staging(const Exec& exec, std::int64_t bytes);

} // namespace soybean::device
