#pragma once
// From a whole configuration to the graph of a training step. Called by the programs and by src/train.
#include "config/options.hpp"
#include "config/table.hpp"
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace soybean::frontend {

/// What [train] says of the updates.
ops::Optimizer optimizer(const config::TrainOptions& options);

/// Forward, backward and update of one batch, without the savings that planning would choose. `root`: the document with
/// overrides applied, of which [model] is read. Throws Error with file and line.
graph::Graph build_training_graph(const config::Table& root, const config::RunConfig& config);

/// What [train] says of recomputation; nothing where planning chooses.
std::optional<graph::Recompute> recompute_of(const config::TrainOptions& options);

/// The configuration with what was chosen for a step.
config::RunConfig with_savings(config::RunConfig config, std::int64_t microbatches, graph::Recompute recompute);

/// What has to be said beside a table of the graph's tensors; "" or a line.
std::string shapes_note(const graph::Graph& graph);

} // namespace soybean::frontend
