#pragma once
// Memory of the host or of an accelerator, and copies between the two. One source per vendor (host/memory.cpp,
// cuda/memory.cpp). Called by Arena, pack, comm and whoever reads a result on the host.
#include "device/exec.hpp"

#include <cstdint>

namespace soybean::device {

/// `bytes` zeroed bytes of the memory of `device` (-1: the host), aligned to at least 256 bytes; nullptr when there is
/// no room. bytes > 0.
void* allocate(int device, std::int64_t bytes);
void release(int device, void* data, std::int64_t bytes) noexcept;

/// From exec's memory to the host's: waits until what is queued and the copy are done.
void copy_to_host(const Exec& exec, void* host, const void* data, std::int64_t bytes);
/// From the host's memory to exec's, in order with its kernels; `host` may be reused at once.
void copy_from_host(const Exec& exec, void* data, const void* host, std::int64_t bytes);
void zero(const Exec& exec, void* data, std::int64_t bytes);

} // namespace soybean::device
