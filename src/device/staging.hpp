#pragma once
// Scratch of an accelerator in which data is brought into or out of physical order on its way to or from the host.
// Called by device/pack.cpp, and by the executor ahead of it.
#include "device/exec.hpp"

#include "device/tensor_view.hpp"

#include <cstdint>

namespace soybean::device {

/// At least `bytes` bytes of exec's memory, one buffer per Exec, used in the order of its stream; throws Error when
/// there is no room. Kept for the next call.
void* staging(const Exec& exec, std::int64_t bytes);

/// The most that upload() and download() of parts of a block need of it; 0 on the host.
std::int64_t staging_bytes(const Exec& exec, const TensorView& view);

} // namespace soybean::device
