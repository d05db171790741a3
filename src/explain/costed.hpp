#pragma once
// A plan with all that follows from it: its program, where every buffer of the fullest rank lies, and what a step takes
// on a machine. Everything in src/explain begins here. Called by soybean_plan.
#include "graph/graph.hpp"
#include "machine/time.hpp"
#include "plan/plan.hpp"
#include "program/memory.hpp"
#include "program/program.hpp"
#include "simulate/step.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace soybean::explain {

/// What plans are made for.
struct Subject {
  const graph::Graph& graph;
  std::int64_t batch = 0;                    ///< samples of one step
  const machine::Setting* setting = nullptr; ///< of the plans' mesh; none: nothing is said of time
  bool pinned = false;                       ///< the plan a run would take has pins, which named strategies know not of
};

struct Costed {
  plan::Plan plan;
  program::Program program;
  program::Layout layout; ///< of the fullest rank, without scratch of kernels and staging of messages
  std::optional<simulate::Step> step;

  std::int64_t peak_memory() const { return layout.arena_bytes; }
};

Costed cost(const Subject& subject, plan::Plan plan);

/// The step that is there where the subject has a machine; throws Bug where it is not.
const simulate::Step& predicted(const std::optional<simulate::Step>& step);

/// What takes most of a step: with a machine the layer that is computed longest or the link that is waited for longest,
/// "waiting for NIC 45 %"; without one the layer whose tensors move most, "fc6 31 %".
std::string bottleneck(const Subject& subject, const Costed& costed);

/// The outermost level of links that a redistribution step crosses.
std::size_t level_crossed(const machine::Setting& setting, const tiling::Step& step);

} // namespace soybean::explain
