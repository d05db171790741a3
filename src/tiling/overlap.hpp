#pragma once
// How much of one tiling is already where another wants it. Internal to src/tiling: the cost of an exchange.
#include "tiling/tiling.hpp"

namespace soybean::tiling {

/// Elements of a tiling's blocks, summed over all ranks. Cuts that do not split count each of their parts.
std::int64_t held_elements(const Mesh& mesh, const Shape& shape, const Tiling& tiling);

/// Elements of block(a) ∩ block(b), summed over all ranks, without visiting each rank: dims whose cuts have nothing to
/// do with each other contribute factors.
std::int64_t overlap(const Mesh& mesh, const Shape& shape, const Tiling& a, const Tiling& b);

} // namespace soybean::tiling
