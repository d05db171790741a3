#pragma once
// Operands that are repeated along dims of a larger block: where the element lies that belongs to a sample, position
// and channel. Shared by broadcast, reduce and expand kernels. Blocks are [sample][position][channel] in memory.
#include "device/tensor_view.hpp"
#include "kernels/layout.hpp"

namespace soybean::kernels {

/// A block of images (rank 4) or features (rank 2, one position).
struct Cells {
  std::int64_t samples = 0, positions = 1, channels = 0;
  std::int64_t rows() const { return samples * positions; }
};

/// Steps of an operand from sample to sample, position to position, channel to channel; 0 where it is repeated.
struct Steps {
  std::int64_t sample = 0, position = 0, channel = 0;
  SOYBEAN_FUNCTION std::int64_t at(std::int64_t b, std::int64_t s, std::int64_t c) const {
    return b * sample + s * position + c * channel;
  }
};

inline Cells cells_of(const device::TensorView& view) {
  const Shape& e = view.box.extents;
  ensure(e.size() == 2 || e.size() == 4, "images or features are needed");
  if (e.size() == 2) return {e[0], 1, e[1]};
  return {e[0], e[2] * e[3], e[1]};
}

/// Of `view` against the larger block `whole`: a vector [C], [B, C] for [B, C, 1, 1], or extents of 1.
inline Steps steps_of(const device::TensorView& view, const device::TensorView& whole) {
  const Shape &mine = view.global, &all = whole.global;
  const std::size_t rank = mine.size();
  ensure(rank <= all.size() && (rank == 1 || view.extent(0) == whole.extent(0)), "operands have other samples");
  const std::int64_t channels = view.extent(rank == 1 ? 0 : 1);
  const bool has_channels = mine[rank == 1 ? 0 : 1] == all[1];
  ensure(channels == (has_channels ? whole.extent(1) : 1), "operands have other channels");
  const bool has_positions = rank == 4 && mine[2] == all[2] && mine[3] == all[3];
  const std::int64_t positions = rank == 4 ? view.extent(2) * view.extent(3) : 1;
  ensure(has_positions || positions == 1, "operands have other positions");
  return {rank == 1 ? 0 : positions * channels, has_positions ? channels : 0, has_channels ? 1 : 0};
}

} // namespace soybean::kernels
