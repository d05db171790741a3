#pragma once
// Brings what the host feeds each step to an accelerator beside the kernels of the step before: by page-locked memory
// and a queue of its own. Owned by the executor.
#include "device/exec.hpp"
#include "device/tensor_view.hpp"

#include <cstdint>
#include <map>
#include <memory>

namespace soybean::device {

class Uploader {
public:
  explicit Uploader(const Exec& exec); ///< which must outlive it
  ~Uploader();
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;

  /// Bytes of the accelerator's memory that `reserve` takes for a block: two of its size, on the host none.
  static std::int64_t reserved_bytes(const Exec& exec, const TensorView& view);
  /// Makes what writing a block needs, on an accelerator buffers there and as many page-locked ones.
  void reserve(const TensorView& view);

  /// Writes all of a block that was reserved, in order with exec's kernels, from the host's memory, row-major by global
  /// dims, which may be reused at once. The host waits only where two earlier blocks for the same memory are still on
  /// their way. On the host: upload().
  void write(const TensorView& view, const void* host);

private:
  struct Slot;
  struct Target;
  const Exec& exec_;
  std::unique_ptr<class Stream> stream_;
  std::map<const void*, std::unique_ptr<Target>> targets_; ///< by the memory they are for
};

} // namespace soybean::device
