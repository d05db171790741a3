#include "device/stream.hpp"

#include "base/error.hpp"

#include <cstring>
#include <new>

namespace soybean::device {

Stream::Stream(int device) : device_(device) {
  ensure(device < 0, "an accelerator in a build without any");
}
Stream::~Stream() = default;

void Stream::copy(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void Stream::zero(void* data, std::int64_t bytes) {
  if (bytes > 0) std::memset(data, 0, static_cast<std::size_t>(bytes));
}

void Stream::wait(const Event&) {}
void Stream::synchronise() {}

Event::Event(int device) : device_(device) {}
Event::~Event() = default;
void Event::record(Stream&) {}
bool Event::done() const {
  return true;
}
void Event::synchronise() const {}

HostBuffer::HostBuffer(int device, std::int64_t bytes) : bytes_(bytes), device_(device) {
  if (bytes > 0)
    data_ = static_cast<std::byte*>(::operator new (static_cast<std::size_t>(bytes), std::align_val_t{64}));
}

HostBuffer::~HostBuffer() {
  ::operator delete (data_, std::align_val_t{64});
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

Recording::~Recording() = default;
bool Recording::begin(Stream&) {
  return false;
}
void Recording::end(Stream&) {}
void Recording::abandon(Stream&) noexcept {}
void Recording::launch(Stream&) {
  throw Bug("nothing can be recorded on the host");
}

} // namespace soybean::device
