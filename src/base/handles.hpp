#pragma once
// One owner for every C handle (MPI, HDF5, NCCL, cuDNN, files): not copyable, released once, destructor noexcept.
// Traits: `using Handle = …; static Handle null(); static void release(Handle) noexcept;`
#include <utility>

namespace soybean {

template<class Traits>
class Unique {
public:
  using Handle = typename Traits::Handle;

  Unique() noexcept : handle_(Traits::null()) {}
  explicit Unique(Handle handle) noexcept : handle_(handle) {}
  Unique(Unique&& other) noexcept : handle_(std::exchange(other.handle_, Traits::null())) {}
  Unique& operator=(Unique&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = std::exchange(other.handle_, Traits::null());
    }
    return *this;
  }
  Unique(const Unique&) = delete;
  Unique& operator=(const Unique&) = delete;
  ~Unique() noexcept { reset(); }

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Traits::null(); }
  /// Gives the handle away: somebody else releases it.
  Handle release() noexcept { return std::exchange(handle_, Traits::null()); }
  void reset() noexcept {
    if (handle_ != Traits::null()) Traits::release(std::exchange(handle_, Traits::null()));
  }

private:
  Handle handle_;
};

} // namespace soybean
