#pragma once
// The matrix product of the reference kernels: plain loops, blocked for cache and registers, sums in an order that
// depends on nothing but the sizes. One thread; callers hand out blocks of the result.
#include <cstdint>

namespace soybean::kernels {

/// Element (i, j) is data[i * row + j * column].
template<class T>
struct Matrix {
  T* data = nullptr;
  std::int64_t row = 0, column = 1;
};

/// Sizes of c [m, n] = a [m, k] · b [k, n].
struct GemmSize {
  std::int64_t m = 0, n = 0, k = 0;
};

/// c = a · b, or c += a · b. Instantiated for float and double.
template<class T>
void gemm_reference(const GemmSize& size, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate);

extern template void gemm_reference(const GemmSize&, Matrix<const float>, Matrix<const float>, Matrix<float>, bool);
extern template void gemm_reference(const GemmSize&, Matrix<const double>, Matrix<const double>, Matrix<double>, bool);

} // namespace soybean::kernels
