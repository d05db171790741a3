#pragma once
// What sets two plans for the same graph and mesh apart. Called by soybean_plan.
#include "graph/graph.hpp"
#include "plan/plan.hpp"

#include <string>

namespace soybean::plan {

struct NamedPlan {
  std::string name; ///< of its file
  const Plan& plan;
};

/// Both totals, then the nodes that do something else and the tensors that are kept in another tiling or move another
/// number of bytes, the largest difference first; a line where there are none. Control traffic is left out. Ends with a
/// newline.
std::string difference(const graph::Graph& graph, const NamedPlan& a, const NamedPlan& b);

} // namespace soybean::plan
