#pragma once
// Copies between blocks of different physical order or size: concat, slice, permute, reshape. Hides how the loops are
// arranged so that the innermost one runs along the destination.
#include "kernels/kernel.hpp"

#include <cstdint>
#include <vector>

namespace soybean::kernels {

/// A range of elements, as loops: element (i₀, i₁, …) lies at Σ iₖ·fromₖ in the source and Σ iₖ·toₖ in the destination.
struct StridedAxis {
  std::int64_t extent = 0, from = 0, to = 0;
};

/// to[Σ iₖ·toₖ] = from[Σ iₖ·fromₖ] for all elements; at most 4 axes. 8 bytes per element.
void copy_strided(const Exec& exec, const char* label, std::vector<StridedAxis> axes, const float* from, float* to);
/// to[i] = 0 for i in [0, n).
void fill_zeros(const Exec& exec, const char* label, std::int64_t n, float* to);

/// The strides in elements of a block's dims: batch, channel and position (of an image, or of a flattened one).
struct FeatureStrides {
  std::int64_t batch = 0, channel = 0, position = 0;
};
/// Of a block [B, …] whose samples have `positions` elements per channel. Its physical order is the image's (spatial is
/// `positions`) or plain. Throws Bug for any other.
FeatureStrides feature_strides(const TensorView& view, std::int64_t positions);

} // namespace soybean::kernels
