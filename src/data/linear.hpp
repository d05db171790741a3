#pragma once
// The weights of resizing with linear interpolation, widened where an axis becomes shorter so that every element counts
// (Pillow's BILINEAR, torchvision's antialias). Used for images as they are read and by augmentation.
#include <cstdint>
#include <vector>

namespace soybean::data {

/// Element x of the resized axis is the sum over k < counts[x] of weights[x·most + k] times element firsts[x] + k.
struct Taps {
  std::int64_t most = 0;
  std::vector<std::int64_t> firsts, counts;
  std::vector<double> weights;
};

Taps linear_taps(std::int64_t from, std::int64_t to);

} // namespace soybean::data
