#include "kernels/gemm_reference.hpp"

#include <algorithm>

namespace soybean::kernels {

namespace {

constexpr int micro_rows = 4;             ///< rows of c kept in registers
constexpr int panel = 8;                  ///< columns of c kept in registers
constexpr std::int64_t depth_block = 256; ///< terms per pass: a packed panel of b stays in the first cache

/// Rows × panel terms of c over `depth` steps; b packed [depth][panel].
template<int Rows, class T>
void micro(std::int64_t depth, Matrix<const T> a, const T* b, T (&sum)[micro_rows][panel]) {
  T acc[Rows][panel] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    for (int i = 0; i < Rows; ++i) {
      const T factor = a.data[i * a.row + k * a.column];
#pragma omp simd
      for (int j = 0; j < panel; ++j) acc[i][j] += factor * b[k * panel + j];
    }
  }
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j < panel; ++j) sum[i][j] = acc[i][j];
}

template<class T>
void micro(std::int64_t rows, std::int64_t depth, Matrix<const T> a, const T* b, T (&sum)[micro_rows][panel]) {
  switch (rows) {
  case 1:
    return micro<1>(depth, a, b, sum);
  case 2:
    return micro<2>(depth, a, b, sum);
  case 3:
    return micro<3>(depth, a, b, sum);
  default:
    return micro<4>(depth, a, b, sum);
  }
}

/// Packs `width` columns of b as [depth][panel], zeros behind them.
template<class T>
void pack_panel(std::int64_t depth, std::int64_t width, Matrix<const T> b, T* packed) {
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t j = 0; j < panel; ++j)
      packed[k * panel + j] = j < width ? b.data[k * b.row + j * b.column] : T(0);
}

} // namespace

template<class T>
void gemm_reference(const GemmSize& size, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, bool accumulate) {
  if (!accumulate)
    for (std::int64_t i = 0; i < size.m; ++i)
      for (std::int64_t j = 0; j < size.n; ++j) c.data[i * c.row + j * c.column] = T(0);
  alignas(64) T packed[depth_block * panel];
  for (std::int64_t column = 0; column < size.n; column += panel) {
    const std::int64_t width = std::min<std::int64_t>(panel, size.n - column);
    for (std::int64_t first = 0; first < size.k; first += depth_block) {
      const std::int64_t depth = std::min(depth_block, size.k - first);
      pack_panel<T>(depth, width, {b.data + first * b.row + column * b.column, b.row, b.column}, packed);
      for (std::int64_t row = 0; row < size.m; row += micro_rows) {
        const std::int64_t rows = std::min<std::int64_t>(micro_rows, size.m - row);
        T sum[micro_rows][panel];
        micro<T>(rows, depth, {a.data + row * a.row + first * a.column, a.row, a.column}, packed, sum);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < width; ++j) c.data[(row + i) * c.row + (column + j) * c.column] += sum[i][j];
      }
    }
  }
}

template void gemm_reference(const GemmSize&, Matrix<const float>, Matrix<const float>, Matrix<float>, bool);
template void gemm_reference(const GemmSize&, Matrix<const double>, Matrix<const double>, Matrix<double>, bool);

} // namespace soybean::kernels
