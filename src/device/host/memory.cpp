#include "device/memory.hpp"

#include "device/pages.hpp"

#include <cstring>

namespace soybean::device {

void* allocate(int, std::int64_t bytes) {
  return map_pages(bytes);
}

void release(int, void* data, std::int64_t bytes) noexcept {
  unmap_pages(data, bytes);
}

void copy_to_host(const Exec&, void* host, const void* data, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(host, data, static_cast<std::size_t>(bytes));
}

void copy_from_host(const Exec&, void* data, const void* host, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(data, host, static_cast<std::size_t>(bytes));
}

void zero(const Exec&, void* data, std::int64_t bytes) {
  if (bytes > 0) std::memset(data, 0, static_cast<std::size_t>(bytes));
}

} // namespace soybean::device
