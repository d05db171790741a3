#pragma once
// Ways for a step to take less memory that change its graph: parts of a batch worked off one after the other, results
// computed again instead of kept. Hides which of them are tried. Called by the programs and src/train.
#include "graph/graph.hpp"
#include "plan/plan.hpp"
#include "plan/planner.hpp"
#include "tiling/mesh.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace soybean::plan {

struct Savings {
  std::int64_t microbatches = 0;             ///< 0: to be chosen
  std::optional<graph::Recompute> recompute; ///< nothing: to be chosen
};

/// The graph of a step with savings, nothing in them to be chosen.
using Build = std::function<graph::Graph(const Savings&)>;

struct Planned {
  graph::Graph graph; ///< says what was chosen
  Plan plan;
};

/// The cheapest plan that is found within options.memory, over the savings that `given` leaves open; where prices are
/// equal the one that computes less. Without a limit nothing is saved that is not given. Tried are, for each kind of
/// recomputation from none on, the cheapest plans of numbers of microbatches that divide `batch`, each about twice the
/// one before, at first those of at least a sample for each rank. Dearer plans that hold less (memory_limit.hpp) are
/// looked for only where those do not fit, for the most microbatches and recomputation, or may be cheaper, for the
/// fewest microbatches. Deterministic. Throws Error as make_plan, saying what was tried.
Planned make_plan_with(const Savings& given, std::int64_t batch, const Build& build, const tiling::Mesh& mesh,
                       const Options& options);

/// ", 4 microbatches, recompute segments": what a graph has of them.
std::string savings_text(const graph::Graph& graph);

} // namespace soybean::plan
