#pragma once
// Moves batches from the loader into the executor's fed buffers.
#include "data/loader.hpp"
#include "graph/graph.hpp"
#include "runtime/executor.hpp"
#include "train/schedule.hpp"

#include <vector>

namespace soybean::train {

/// The parts of a batch this rank's fed buffers need, one per buffer but hyper, in the executor's order.
std::vector<data::Part> fed_parts(const graph::Graph& graph, const runtime::Executor& executor);

/// Copies a batch read for `fed_parts` into the fed buffers.
void feed(const graph::Graph& graph, runtime::Executor& executor, const data::Batch& batch);

/// Writes the step's scalars (schedule.hpp), as many as the graph reads.
void feed_hyper(const graph::Graph& graph, runtime::Executor& executor, const StepScalars& scalars);

} // namespace soybean::train
