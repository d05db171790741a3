// Memory of accelerators by plain cudaMalloc, so that what is predicted is what is allocated.
#include "device/memory.hpp"

#include "device/cuda/check.hpp"
#include "device/pages.hpp"
#include "device/stream.hpp"

namespace soybean::device {

namespace {

using cuda::check;
using cuda::use;

/// Whether an asynchronous copy from `host` has read all of it when the call returns: what neither the accelerator nor
/// its copy engines can read by themselves is staged by the driver at once.
bool is_staged_at_once(const void* host, int device) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, host), "cudaPointerGetAttributes");
  if (attributes.type != cudaMemoryTypeUnregistered) return false;
  int reads_any_memory = 0;
  check(cudaDeviceGetAttribute(&reads_any_memory, cudaDevAttrPageableMemoryAccess, device), "cudaDeviceGetAttribute");
  return reads_any_memory == 0;
}

} // namespace

void* allocate(int device, std::int64_t bytes) {
  if (device < 0) return map_pages(bytes);
  use(device);
  const auto size = static_cast<std::size_t>(bytes);
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, size);
  if (code == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError()); // a later call would report it again
    return nullptr;
  }
  check(code, "cudaMalloc");
  try {
    check(cudaMemsetAsync(data, 0, size, cudaStreamLegacy), "cudaMemsetAsync");
    check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize"); // other streams do not wait for this one
  } catch (...) {
    release(device, data, bytes);
    throw;
  }
  return data;
}

void release(int device, void* data, std::int64_t bytes) noexcept {
  if (device < 0)
    unmap_pages(data, bytes);
  else
    static_cast<void>(cudaFree(data));
}

void copy_to_host(const Exec& exec, void* host, const void* data, std::int64_t bytes) {
  if (bytes <= 0) return;
  exec.stream().copy(host, data, bytes);
  exec.stream().synchronise();
}

void copy_from_host(const Exec& exec, void* data, const void* host, std::int64_t bytes) {
  if (bytes <= 0) return;
  exec.stream().copy(data, host, bytes);
  if (exec.on_device() && !is_staged_at_once(host, exec.device())) exec.stream().synchronise();
}

void zero(const Exec& exec, void* data, std::int64_t bytes) {
  exec.stream().zero(data, bytes);
}

} // namespace soybean::device
