#pragma once
// What soybean_plan plans for: a model file, read for so many ranks, and the plan a run would take. Called by
// soybean_plan alone.
#include "app/command_line.hpp"
#include "config/options.hpp"
#include "explain/costed.hpp"
#include "graph/graph.hpp"
#include "machine/machine.hpp"
#include "machine/time.hpp"
#include "plan/plan.hpp"
#include "plan/planner.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace soybean::app {

struct Job {
  config::Table root; ///< the model file
  config::RunConfig config;
  graph::Graph graph;
  tiling::Mesh mesh;
  std::optional<machine::Setting> setting; ///< where there is a machine

  explain::Subject subject() const {
    return {graph, config.data.batch, setting ? &*setting : nullptr, !config.parallel.pins.empty()};
  }
};

/// The machine that --machine or the model file names.
std::optional<machine::Machine> read_machine(const Common& common);

/// For the mesh of the file's or the machine's hosts. `times`: how many times the model file's batch.
Job read_job(const Common& common, int ranks, const machine::Machine* machine, std::int64_t times = 1);

/// The same for a mesh that is given.
Job read_job(const Common& common, const tiling::Mesh& mesh, const machine::Machine* machine);

/// How the run's plan is made, where it is not read from a file.
plan::Options options_of(const Job& job);

/// The plan a run would take; the job's graph and configuration become those it is of.
plan::Plan choose(Job& job);

/// The same for the graph a plan file is for, without its plan.
void prepare_for(Job& job, const std::string& text, const std::string& file);

/// That of a named strategy; the chosen one where it is of that strategy.
plan::Plan named_plan(const Job& job, const plan::Plan& chosen, const std::string& strategy);

} // namespace soybean::app
