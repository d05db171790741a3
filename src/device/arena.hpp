#pragma once
// The one allocation a rank makes for a program: every buffer is an offset into it (program/memory.hpp). Made by the
// runtime.
#include "device/exec.hpp"

#include <cstddef>
#include <cstdint>

namespace soybean::device {

/// `bytes` bytes of zeros of exec's memory, moved but not copied: aligned to 2 MiB on the host, where pages are taken
/// up when first touched, to at least 256 bytes on an accelerator.
class Arena {
public:
  Arena() = default;
  Arena(const Exec& exec, std::int64_t bytes); ///< throws Error when there is no such memory
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
    return reinterpret_cast<T*>(static_cast<std::byte*>(data_) + offset);
  }

private:
  void free_memory() noexcept;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  int device_ = -1;
};

} // namespace soybean::device
