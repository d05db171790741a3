#pragma once
// Tilings drawn at random, for tests of what moves between them cost.
#include "tiling/tiling.hpp"

#include <cstdint>
#include <random>
#include <utility>

namespace soybean::test {

/// Replicated, split or, where it may be, partial, cut by cut.
inline tiling::Tiling random_tiling(std::mt19937& random, const Shape& shape, const tiling::Mesh& mesh, bool partial) {
  tiling::Tiling tiling;
  for (std::size_t cut = 0; cut < mesh.cuts.size(); ++cut) {
    const int pick = static_cast<int>(random() % (shape.size() + 2));
    if (pick < 2)
      tiling.push_back(pick == 0 && partial ? tiling::partial() : tiling::replicate());
    else
      tiling.push_back(tiling::split(pick - 2));
  }
  return tiling::normalise(std::move(tiling), shape, mesh);
}

/// The same with what windows of 3, two apart, need of some dims.
inline tiling::Tiling with_halos(std::mt19937& random, tiling::Tiling tiling, const Shape& shape,
                                 const tiling::Mesh& mesh) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (random() % 2 == 0) continue;
    const tiling::Halo halo{.reach = tiling::Reach::positions,
                            .other = static_cast<std::int32_t>((shape[d] + 1) / 2),
                            .stride = 2,
                            .kernel = 3,
                            .padding = 1};
    for (tiling::Entry& e : tiling)
      if (e.kind == tiling::Kind::split && e.dim == static_cast<int>(d)) e = tiling::split(e.dim, 1, halo);
  }
  return tiling::normalise(std::move(tiling), shape, mesh);
}

} // namespace soybean::test
