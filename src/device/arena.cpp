#include "device/arena.hpp"

#include "base/error.hpp"
#include "device/memory.hpp"

#include <utility>

namespace soybean::device {

Arena::Arena(const Exec& exec, std::int64_t bytes) : bytes_(bytes), device_(exec.device()) {
  ensure(bytes >= 0, "arena of negative size");
  if (bytes == 0) return;
  data_ = allocate(device_, bytes);
  if (!data_)
    fail_running(
        "memory: no room for a rank's buffers, got {} bytes to allocate. use more ranks or a smaller data.batch",
        bytes);
}

Arena::~Arena() {
  free_memory();
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    free_memory();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    device_ = other.device_;
  }
  return *this;
}

void Arena::free_memory() noexcept {
  if (data_) release(device_, data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

} // namespace soybean::device
