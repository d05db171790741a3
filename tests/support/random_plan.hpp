#pragma once
// Random legal plans for property tests: any choice a node's form allows on each cut, halos included, any partial-free
// stored tiling, partial sums passed on where linear operators can take them. Everything is a function of the seed.
#include "plan/plan.hpp"

#include <cstdint>

namespace soybean::support {

/// A mesh of so many ranks with its cuts in random order and of random sizes (4 ranks: [2, 2] or [4]).
tiling::Mesh random_mesh(std::uint64_t seed, int ranks);

enum class Splits : std::uint8_t {
  any,    ///< every index is as likely
  images, ///< rows and columns where there are any, mostly
};

/// Passes plan::verify. The same arguments always give the same plan.
plan::Plan random_plan(const graph::Graph& graph, const tiling::Mesh& mesh, std::uint64_t seed,
                       Splits splits = Splits::any);

/// The plan of one rank.
plan::Plan serial_plan(const graph::Graph& graph);

} // namespace soybean::support
