#pragma once
// Why a layer is split as it is: what else it could do and what that would cost, and where its bytes go. Called by
// soybean_plan.
#include "explain/costed.hpp"
#include "plan/planner.hpp"

#include <string>

namespace soybean::explain {

/// The layer of that name. Throws Error (`--why: …`) with the nearest name.
int find_layer(const graph::Graph& graph, const std::string& name);

/// The layer's alternatives, each with everything else planned anew (plan::ways, with the options' pins), and every
/// move of a tensor it makes or uses.
std::string why(const Subject& subject, const Costed& costed, int layer, const plan::Options& options);

} // namespace soybean::explain
