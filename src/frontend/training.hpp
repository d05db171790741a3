#pragma once
// From a whole configuration to the graph of a training step. Called by the programs and by src/train.
#include "config/options.hpp"
#include "config/table.hpp"
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"

#include <string>

namespace soybean::frontend {

/// What [train] says of the updates.
ops::Optimizer optimizer(const config::TrainOptions& options);

/// Forward, backward and update of one batch. `root`: the document with overrides applied, of which [model] is read.
/// Throws Error with file and line.
graph::Graph build_training_graph(const config::Table& root, const config::RunConfig& config);

/// What has to be said beside a table of the graph's tensors; "" or a line.
std::string shapes_note(const graph::Graph& graph);

} // namespace soybean::frontend
