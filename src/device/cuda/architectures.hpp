#pragma once
// Which accelerators a program compiled for a list of architectures runs on. Called by devices.cpp and its tests.
#include <string_view>

namespace soybean::device::cuda {

/// `list`: entries of CMAKE_CUDA_ARCHITECTURES separated by ',' or ';'. "90" is machine code and portable code for
/// compute capability 9.0, "90-real" the first alone, "90-virtual" the second. Machine code runs on the same major
/// version from its minor on, portable code on everything from its version on, code of "90a" only on 9.0. An empty
/// list, "native" and "all…" fit any.
bool has_code_for(std::string_view list, int major, int minor);

} // namespace soybean::device::cuda
