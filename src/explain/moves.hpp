#pragma once
// Every move of a tensor under a plan, and which layers it is between. Called inside src/explain.
#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "tiling/redistribution.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::explain {

/// A tensor is brought from one tiling to another.
struct Move {
  graph::TensorId tensor = graph::none;
  tiling::Tiling from, to;
  bool stores = false;              ///< from the tiling it is made in to the one it is kept in
  graph::NodeId node = graph::none; ///< that makes it (stores), or the first one that needs it so
  int from_layer = graph::none;     ///< that makes the tensor, or, of a source, that uses it first
  int to_layer = graph::none;       ///< that needs it; `stores`: its first user's
  std::int64_t bytes = 0;           ///< all ranks together
};

/// In the order of tensors; moves of no bytes are left out. The bytes add up to those of the plan.
std::vector<Move> all_moves(const graph::Graph& graph, const plan::Plan& plan);

/// "reduce_scatter/4, all_to_all/2": the collectives of a move, each with the ranks of a group.
std::string collectives(const graph::Graph& graph, const plan::Plan& plan, const Move& move);

} // namespace soybean::explain
