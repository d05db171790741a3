#pragma once
// Descriptors of cuDNN's tensors. Included by the sources of this folder that call cuDNN.
#include "base/handles.hpp"
#include "device/cuda/check.hpp"

#include <cstdint>

namespace soybean::device::cuda {

struct TensorTraits {
  using Handle = cudnnTensorDescriptor_t;
  static Handle null() { return nullptr; }
  static void release(Handle handle) noexcept { static_cast<void>(cudnnDestroyTensorDescriptor(handle)); }
};

/// An extent as the library takes them, in 32 bits. Throws Bug for one that does not fit.
int narrow(std::int64_t value);

Unique<TensorTraits> make_tensor(); ///< of no extents yet
/// Dense floats stored NHWC.
Unique<TensorTraits> images(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w);

} // namespace soybean::device::cuda
