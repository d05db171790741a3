#pragma once
// A rank's block of a tensor as kernels see it: memory, global position, physical layout.
#include "base/types.hpp"

#include <algorithm>

namespace soybean::device {

/// `data` holds box.extents elements. Physical order (DESIGN §5): with spatial S > 1 each logical row [C·S] of dim 0 is
/// stored as [S][C]; a block of images has S = its H·W and so is NHWC. S = 1 is plain logical order.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  Box box;      ///< which part of the global tensor this is (offsets: for random numbers and masks)
  Shape global; ///< global shape
  std::int64_t spatial = 1;

  template<class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t size() const { return volume(box); }
  std::int64_t extent(int dim) const { return box.extents[dim]; }
};

/// `spatial` of a block with these extents, of a tensor of that spatial size: image blocks may have less height or
/// width.
inline std::int64_t block_spatial(const Shape& extents, std::int64_t spatial) {
  return extents.size() != 4 || spatial == 1 ? spatial : std::max<std::int64_t>(1, extents[2] * extents[3]);
}

} // namespace soybean::device
