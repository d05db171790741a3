#pragma once
// Images moved inside a frame of zeros, or cut out of one: what convolutions of blocks do where the vendor library does
// not take a block's padding.
#include "device/exec.hpp"

#include <cstdint>

namespace soybean::kernels {

/// Images [samples][h][w][channels] of two sizes.
struct Frame {
  std::int64_t samples = 0, channels = 0;
  std::int64_t from_h = 0, from_w = 0, to_h = 0, to_w = 0;
  std::int64_t top = 0, left = 0; ///< pixel (h, w) of `to` is (h − top, w − left) of `from`, or 0 where there is none
};

/// 4 bytes per element of both.
void copy_frame(const device::Exec& exec, const Frame& frame, const float* from, float* to);

} // namespace soybean::kernels
