#pragma once
// Memory of the host as whole pages, large ones where the system has them. Called by each vendor's memory source.
#include <cstdint>

namespace soybean::device {

/// Zero pages, aligned to 2 MiB, taken up when first touched; nullptr when there are none. bytes > 0.
void* map_pages(std::int64_t bytes);
void unmap_pages(void* data, std::int64_t bytes) noexcept;

} // namespace soybean::device
