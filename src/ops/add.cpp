// Sum of any number of tensors of one shape: residual joins, and the terms of a gradient.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2) fail("{}: inputs, got {} expected at least 2", where(graph, node), node.inputs.size());
  return {elementwise_result(graph, node, node.inputs.size())};
}

Form form_of(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, true);
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]);
  for (graph::TensorId term : node.inputs) backward.contribute(term, dy);
}

double flops_of(const Graph& graph, const Node& node) {
  return static_cast<double>(node.inputs.size() - 1) * result_elements(graph, node);
}

} // namespace

std::vector<Operator> add_family() {
  return {{"add", infer, form_of, gradient, flops_of, {0}}};
}

} // namespace soybean::ops
