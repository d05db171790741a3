#pragma once
// The one allocation a rank makes for a program: every buffer is an offset into it (program/memory.hpp). Hides where
// memory comes from: pages of the host (host/arena.cpp) or the device. Made by the runtime.
#include <cstddef>
#include <cstdint>

namespace soybean::device {

/// `bytes` bytes of zeros, aligned to 2 MiB, moved but not copied. On the host pages are taken up when first touched.
class Arena {
public:
  Arena() = default;
  explicit Arena(std::int64_t bytes); ///< throws Error when there is no such memory
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::int64_t bytes() const noexcept { return bytes_; }
  void* data() const noexcept { return data_; }
  /// The T at `offset` bytes from the start.
  template<class T = void>
  T* at(std::int64_t offset) const noexcept {
    return static_cast<T*>(static_cast<void*>(static_cast<std::byte*>(data_) + offset));
  }

private:
  void release() noexcept;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

} // namespace soybean::device
