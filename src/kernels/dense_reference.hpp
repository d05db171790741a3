#pragma once
// The plain matrix product behind the fp64 dense kernels, also the tests' oracle in float.
#include "device/dnn.hpp"

namespace soybean::kernels {

/// c = op(a) op(b) as device::matmul, but in plain loops and for float or double. The order of the sums does not depend
/// on the threads.
template<class T>
void matmul_reference(const device::Exec& exec, const device::Matmul& shape, const T* a, const T* b, T* c);

extern template void matmul_reference(const device::Exec&, const device::Matmul&, const float*, const float*, float*);
extern template void matmul_reference(const device::Exec&, const device::Matmul&, const double*, const double*,
                                      double*);

} // namespace soybean::kernels
