#pragma once
// The cheapest plan of a small graph by trying everything, costed by tracking which rank holds which element: no tables
// of the planner's, no `block`, no `elements_moved`, no bounds. Shares with the planner only the forms of operators.
#include "graph/graph.hpp"
#include "machine/time.hpp"
#include "plan/plan.hpp"
#include "tiling/tiling.hpp"

#include <cstdint>

namespace soybean::test {

/// Bytes moved (on a machine: nanoseconds), then bytes held by the fullest rank (summed over tensors and copies).
struct Price {
  std::int64_t moved = 0;
  std::int64_t held = 0;
  auto operator<=>(const Price&) const = default;
};

struct Cheapest {
  bool found = false; ///< false: nothing is as cheap as `limit`
  Price price;
};

enum class ImageSplits : std::uint8_t { none, rows, rows_and_columns }; ///< what nodes may do with images

struct Scope {
  const plan::Plan* admitted = nullptr; ///< its choices are, too
  ImageSplits images = ImageSplits::rows_and_columns;
  const machine::Setting* machine = nullptr; ///< where a step is to take the least time
  std::size_t bound_rows = 2000;             ///< of bounds that say early what exceeds the limit; 0: without
};

/// Over all choice vectors of all nodes (twins alike; none that leaves a rank without elements of an operand, unless a
/// node has no other or `admitted` chooses so) and all partial-free stored tilings of all tensors, on any dim. Looks
/// only at plans of at most `limit`. Nodes are fixed one after the other; of all that is fixed alike for the nodes
/// whose tensors are still to be priced, the cheapest is gone on with, which loses nothing.
Cheapest brute_force(const graph::Graph& graph, const tiling::Mesh& mesh, const Price& limit, const Scope& scope = {});

} // namespace soybean::test
