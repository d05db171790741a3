#pragma once
// What makes a plan a plan of its graph: used to verify plans and to judge plan files. Called inside src/plan only.
#include "plan/plan.hpp"

#include <string>

namespace soybean::plan {

/// Whether the stored tiling of a tensor is a decision of its own; otherwise it follows from others (next values,
/// metrics, inputs, results nobody uses).
bool is_decided(const graph::Graph& graph, graph::TensorId tensor);

/// Fills the entries of `stored` that follow from choices and from the decided ones.
void derive_stored(const graph::Graph& graph, Plan& plan);

/// What is wrong with a node's choices, completing "node 'x' …"; empty if nothing is.
std::string objection_to_node(const graph::Graph& graph, const Plan& plan, graph::NodeId node);

/// What a stored tiling that cuts a flattened tensor inside a channel should have been; empty if it does not: blocks
/// lie in memory channels last (DESIGN §5), which needs them whole.
std::string objection_to_channels(const graph::Tensor& tensor, const tiling::Tiling& tiling, const tiling::Mesh& mesh);

/// What is wrong with a tensor's stored tiling, completing "tensor 'x' …"; empty if nothing is. Choices are fine.
std::string objection_to_tensor(const graph::Graph& graph, const Plan& plan, graph::TensorId tensor);

} // namespace soybean::plan
