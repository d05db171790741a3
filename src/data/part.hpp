#pragma once
// Parts of samples: visiting a box of a row-major array as runs of consecutive elements. Used by the readers.
#include "base/types.hpp"

#include <cstdint>

namespace soybean::data {

/// Calls f(first, count) for each run of consecutive elements of `part` in an array of shape `whole`, in order.
template<class F>
void for_each_run(const Shape& whole, const Box& part, F&& f) {
  if (empty(part)) return;
  // Dims after `inner` are covered completely, so a run spans part.extents[inner] rows of them.
  int inner = static_cast<int>(whole.size()) - 1;
  std::int64_t run = 1;
  while (inner > 0 && part.extents[inner] == whole[inner]) run *= whole[inner--];
  if (inner >= 0) run *= part.extents[inner];
  Shape at(whole.size(), 0); // position inside the part; only dims before `inner` move
  while (true) {
    std::int64_t first = 0;
    for (std::size_t d = 0; d < whole.size(); ++d) first = first * whole[d] + part.offsets[d] + at[d];
    f(first, run);
    int d = inner - 1;
    while (d >= 0 && ++at[d] == part.extents[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

inline void store(DType type, void* out, std::int64_t at, double value) {
  if (type == DType::f64)
    static_cast<double*>(out)[at] = value;
  else
    static_cast<float*>(out)[at] = static_cast<float>(value);
}

} // namespace soybean::data
