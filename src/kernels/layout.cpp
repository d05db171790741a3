#include "kernels/layout.hpp"

#include <fmt/format.h>

namespace soybean::kernels {

using device::TensorView;

namespace {

/// Elements of one index of dim 0.
std::int64_t row_size(const Shape& shape) {
  std::int64_t size = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) size *= shape[d];
  return size;
}

/// Words are put together only once something is wrong: every kernel checks its blocks in every step.
template<class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Bug(fmt::format(format, std::forward<Args>(args)...));
}

} // namespace

void expect(const TensorView& view, DType type) {
  if (view.dtype != type) refuse("a kernel for {} got a block of {}", to_string(type), to_string(view.dtype));
  ensure(view.box.extents.size() == view.global.size() && view.spatial >= 1, "block and tensor differ in rank");
  if (view.spatial != 1 && row_size(view.box.extents) % view.spatial != 0)
    refuse("block {} cuts through the images of {} positions", to_string(view.box), view.spatial);
}

void expect_alike(const TensorView& a, const TensorView& b) {
  if (a.box != b.box || a.spatial != b.spatial || a.dtype != b.dtype)
    refuse("element-wise operands differ: {} (spatial {}) and {} (spatial {})", to_string(a.box), a.spatial,
           to_string(b.box), b.spatial);
}

ChannelRows channel_rows(const TensorView& view) {
  const Shape& e = view.box.extents;
  const std::int64_t positions = e.size() == 4 ? e[2] * e[3] : 1;
  if ((e.size() != 2 && e.size() != 4) || (view.spatial != positions && positions != 0))
    refuse("channels are not innermost in block {} (spatial {})", to_string(view.box), view.spatial);
  return {e[0] * positions, e[1]};
}

std::int64_t physical_offset(const TensorView& view, const Shape& position) {
  const Shape& e = view.box.extents;
  if (e.empty()) return 0;
  std::int64_t inner = 0;
  for (std::size_t d = 1; d < e.size(); ++d) inner = inner * e[d] + position[d];
  const std::int64_t size = row_size(e), channels = size / view.spatial;
  return position[0] * size + inner % view.spatial * channels + inner / view.spatial;
}

LogicalIndex logical_index(const TensorView& view) {
  const Shape &e = view.box.extents, &o = view.box.offsets, &g = view.global;
  const int rank = static_cast<int>(e.size());
  LogicalIndex index;
  ensure(rank <= LogicalIndex::max_dims, "too many dims");
  Shape strides(rank, 1);
  for (int d = rank - 2; d >= 0; --d) strides[d] = strides[d + 1] * g[d + 1];
  for (int d = 0; d < rank; ++d) index.base += o[d] * strides[d];
  if (view.spatial > 1 && rank == 4 && e[3] != g[3]) { // [B][H][W][C] of some columns
    index.outer_dims = 3;
    index.extents[0] = e[0], index.strides[0] = strides[0];
    for (int d = 1; d < 3; ++d) index.extents[d] = e[d + 1], index.strides[d] = strides[d + 1];
    index.inner = e[1];
    index.inner_stride = strides[1];
  } else if (view.spatial > 1) { // [B][S][C], c running in steps of all positions there are
    index.outer_dims = 2;
    index.extents[0] = e[0], index.strides[0] = strides[0];
    index.extents[1] = view.spatial, index.strides[1] = 1;
    index.inner = row_size(e) / view.spatial;
    index.inner_stride = rank == 4 ? strides[1] : view.spatial;
  } else {
    int first = rank; // dims first … run on without gaps
    index.inner = 1;
    while (first > 0 && (first == rank || e[first] == g[first])) index.inner *= e[--first];
    index.outer_dims = first;
    for (int d = 0; d < first; ++d) index.extents[d] = e[d], index.strides[d] = strides[d];
  }
  index.rows = 1;
  for (int d = 0; d < index.outer_dims; ++d) index.rows *= index.extents[d];
  return index;
}

} // namespace soybean::kernels
