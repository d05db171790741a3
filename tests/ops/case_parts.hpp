#pragma once
// What the cases of the harness are built from: an input whose gradient is wanted, and the end of a training graph.
// Included by the files of cases only.
#include "ops/autodiff.hpp"
#include "ops/cases.hpp"
#include "ops/layers.hpp"

#include <utility>
#include <vector>

namespace soybean::ops_test {

// The cases of each file; cases() is all of them.
const std::vector<Case>& shape_cases();
const std::vector<Case>& loss_cases();
const std::vector<Case>& optimizer_cases();

inline graph::Graph start(DType precision) {
  graph::Graph graph;
  graph.name = "case";
  graph.precision = precision;
  return graph;
}

// The cases of each file; cases() is all of them.
const std::vector<Case>& norm_cases();
const std::vector<Case>& arithmetic_cases();
const std::vector<Case>& sequence_cases();

/// input ⊙ parameter: activations of the batch that the loss has a gradient by, element by element.
inline graph::TensorId scaled_input(graph::Graph& graph, std::int64_t batch, const Shape& sample) {
  const graph::TensorId input = ops::input_source(graph, batch, sample);
  graph::Tensor factor = graph.tensors[input];
  factor.name = "factor";
  factor.role = graph::Role::parameter;
  factor.consumers.clear();
  return ops::mul_layer(graph, "scaled", input, ops::append_source(graph, factor));
}

inline graph::TensorId scaled_images(graph::Graph& graph, const Sizes& s) {
  return scaled_input(graph, s.batch, {s.channels, s.height, s.width});
}

/// Flattens images, appends the loss, backward and update, and hands the graph over.
inline graph::Graph finish(graph::Graph& graph, graph::TensorId x, const ops::Optimizer& optimizer = {}) {
  if (graph.tensors[x].shape.size() == 4) x = ops::flatten_layer(graph, "flatten", x);
  ops::loss_layer(graph, x);
  ops::add_backward_and_update(graph, optimizer);
  return std::move(graph);
}

} // namespace soybean::ops_test
