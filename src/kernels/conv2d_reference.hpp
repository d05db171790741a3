#pragma once
// The plain convolution behind the fp64 kernels, also the tests' oracle in float: image patches as rows of a matrix,
// then the plain matrix product. Blocks as in device/dnn.hpp. The order of every sum depends on the extents alone.
#include "device/dnn.hpp"

namespace soybean::kernels::reference {

/// Scratch bytes of any of the three passes, for elements of `element_bytes`.
std::int64_t conv_scratch_bytes(const device::Exec& exec, const device::Conv& conv, device::ConvPass pass,
                                std::int64_t element_bytes);

/// y = x * w. All three are instantiated for float and double; scratch is 64-byte aligned.
template<class T>
void conv_forward(const device::Exec& exec, const device::Conv& conv, const T* x, const T* w, T* y, void* scratch);
/// dx = dy *ᵀ w
template<class T>
void conv_backward_data(const device::Exec& exec, const device::Conv& conv, const T* dy, const T* w, T* dx,
                        void* scratch);
/// dw = Σ over batch and positions of dy · x
template<class T>
void conv_backward_weights(const device::Exec& exec, const device::Conv& conv, const T* dy, const T* x, T* dw,
                           void* scratch);

} // namespace soybean::kernels::reference
