#pragma once
// What the kernels of this folder share about blocks: checks, the rows × channels shape of a block, and the place of a
// logical element. Hides the physical order (DESIGN: NHWC by `spatial`) from the kernels.
#include "base/error.hpp"
#include "device/function.hpp"
#include "device/tensor_view.hpp"

#include <cstdint>

namespace soybean::kernels {

/// Throws Bug unless the block has that element type and `spatial` divides its rows.
void expect(const device::TensorView& view, DType type);
/// Throws Bug unless both are the same block in the same physical order (element-wise operators).
void expect_alike(const device::TensorView& a, const device::TensorView& b);

/// A block whose dim 1 is innermost in memory, as kernels with a channel index walk it: rank 2 plain [B][C], or rank 4
/// stored [B][H][W][C].
struct ChannelRows {
  std::int64_t rows = 0, channels = 0;
};
/// Throws Bug for other layouts.
ChannelRows channel_rows(const device::TensorView& view);

/// The offset, in elements, of a block's element from its local logical position, all dims given.
std::int64_t physical_offset(const device::TensorView& view, const Shape& position);

/// Walks a block in physical order and says each element's global row-major logical index, whatever the tiling:
/// element (row, i), stored at row·inner + i, has index row_base(row) + i·inner_stride.
struct LogicalIndex {
  static constexpr int max_dims = 8;
  int outer_dims = 0;
  std::int64_t extents[max_dims] = {}, strides[max_dims] = {}; ///< of the outer dims
  std::int64_t base = 0;                                       ///< index of the block's first element
  std::int64_t rows = 0, inner = 0, inner_stride = 1;

  SOYBEAN_FUNCTION std::int64_t row_base(std::int64_t row) const {
    std::int64_t index = base;
    for (int d = outer_dims - 1; d >= 0; --d) {
      index += row % extents[d] * strides[d];
      row /= extents[d];
    }
    return index;
  }
};
LogicalIndex logical_index(const device::TensorView& view);

} // namespace soybean::kernels
