#pragma once
// The cheapest plan of a tiny graph by trying everything, costed by tracking which rank holds which element: no tables
// of the planner's, no `block`, no `elements_moved`. Shares with the planner only the forms of operators.
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
  std::int64_t combinations = 0; ///< partial assignments looked at
};

struct Scope {
  const plan::Plan* admitted = nullptr;      ///< its choices are, too
  bool images = true;                        ///< nodes may split rows and columns of images
  const machine::Setting* machine = nullptr; ///< where a step is to take the least time
};

/// Over all choice vectors of all nodes (twins alike; none that leaves a rank without elements of an operand, unless a
/// node has no other or `admitted` chooses so) and all partial-free stored tilings of all tensors, on any dim. Looks
/// only at plans of at most `limit`.
Cheapest brute_force(const graph::Graph& graph, const tiling::Mesh& mesh, const Price& limit, const Scope& scope = {});

/// Elements all ranks receive on the cheapest way from one tiling to another (partial-free) one.
std::int64_t brute_force_elements(const tiling::Mesh& mesh, const graph::Tensor& tensor, const tiling::Tiling& from,
                                  const tiling::Tiling& to);

} // namespace soybean::test
