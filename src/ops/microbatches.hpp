#pragma once
// Gradient accumulation: a batch worked off in parts, one after the other. Hides how the nodes of the first part are
// repeated for the others. Called by autodiff.cpp only.
#include "graph/graph.hpp"

#include <functional>
#include <vector>

namespace soybean::ops {

struct ParameterGradient {
  graph::TensorId parameter = graph::none, gradient = graph::none;
};

/// Repeats the forward and backward nodes of the first part, all there are, for each further one of graph.microbatches.
/// Each part reads its own rows (`input:2`, …, with Tensor::first_row) and the same parameters, so that a part's
/// activations die before the next one's come to be. Gradients of parameters are added up part by part, as terms of
/// sums where ranks have such; `complete` is called for each parameter with the total, as soon as it is there
/// and nothing reads the parameter any more. Throws
/// Error for models with running statistics.
void repeat_parts(graph::Graph& graph, const std::vector<ParameterGradient>& gradients,
                  const std::function<void(const ParameterGradient&)>& complete);

} // namespace soybean::ops
