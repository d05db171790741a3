#include "kernels/strided.hpp"

#include "device/rows.hpp"
#include "kernels/layout.hpp"

#include <algorithm>

namespace soybean::kernels {

namespace {

constexpr std::size_t most_axes = 4;

/// Outermost first along the destination; axes that run on without gaps on both sides become one.
std::vector<StridedAxis> arranged(std::vector<StridedAxis> axes) {
  std::erase_if(axes, [](const StridedAxis& a) { return a.extent == 1; });
  std::stable_sort(axes.begin(), axes.end(), [](const StridedAxis& a, const StridedAxis& b) { return a.to > b.to; });
  std::vector<StridedAxis> merged;
  for (const StridedAxis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.extent * axis.from && merged.back().to == axis.extent * axis.to)
      merged.back() = {merged.back().extent * axis.extent, axis.from, axis.to};
    else
      merged.push_back(axis);
  }
  return merged;
}

/// The outer axes of a copy, at most three, and where a row of the innermost one begins.
struct OuterAxes {
  StridedAxis a{1, 0, 0}, b{1, 0, 0}, c{1, 0, 0};
  std::int64_t rows = 1;

  KOKKOS_INLINE_FUNCTION std::int64_t from(std::int64_t row) const {
    const std::int64_t i = row / c.extent;
    return row % c.extent * c.from + i % b.extent * b.from + i / b.extent * a.from;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t to(std::int64_t row) const {
    const std::int64_t i = row / c.extent;
    return row % c.extent * c.to + i % b.extent * b.to + i / b.extent * a.to;
  }
};

OuterAxes outer_of(const std::vector<StridedAxis>& axes) {
  ensure(axes.size() <= most_axes, "a copy over too many axes");
  OuterAxes outer;
  StridedAxis* const places[] = {&outer.c, &outer.b, &outer.a};
  for (std::size_t k = 0; k + 1 < axes.size(); ++k) *places[k] = axes[axes.size() - 2 - k];
  outer.rows = outer.a.extent * outer.b.extent * outer.c.extent;
  return outer;
}

} // namespace

void copy_strided(const Exec& exec, const char* label, std::vector<StridedAxis> axes, const float* from, float* to) {
  for (const StridedAxis& axis : axes)
    if (axis.extent == 0) return;
  axes = arranged(std::move(axes));
  const StridedAxis inner = axes.empty() ? StridedAxis{1, 1, 1} : axes.back();
  const OuterAxes outer = outer_of(axes);
  if (inner.from != 1 || inner.to != 1) {
    device::rows_for(
        exec, outer.rows, inner.extent, label, KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) {
          to[outer.to(row) + i * inner.to] = from[outer.from(row) + i * inner.from];
        });
  } else if (axes.size() <= 2) { // rows without divisions
    const StridedAxis rows = outer.c;
    device::rows_for(
        exec, rows.extent, inner.extent, label,
        KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { to[row * rows.to + i] = from[row * rows.from + i]; });
  } else {
    device::rows_for(
        exec, outer.rows, inner.extent, label,
        KOKKOS_LAMBDA(std::int64_t row, std::int64_t i) { to[outer.to(row) + i] = from[outer.from(row) + i]; });
  }
}

void fill_zeros(const Exec& exec, const char* label, std::int64_t n, float* to) {
  device::flat_for(
      exec, n, label, KOKKOS_LAMBDA(std::int64_t i) { to[i] = 0; });
}

FeatureStrides feature_strides(const TensorView& view, std::int64_t positions) {
  std::int64_t features = 1;
  for (std::size_t d = 1; d < view.box.extents.size(); ++d) features *= view.box.extents[d];
  if (view.spatial == positions) return {features, 1, features / positions};
  ensure(view.spatial == 1, "a block in neither the image's nor plain order");
  return {features, positions, 1};
}

} // namespace soybean::kernels
