// Elementwise product of two tensors of one shape (gates).
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) fail("{}: inputs, got {} expected 2", where(graph, node), node.inputs.size());
  return {elementwise_result(graph, node, 2)};
}

Form form_of(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, false);
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]), a = node.inputs[0], b = node.inputs[1];
  backward.contribute(node, a, {.op = "mul", .inputs = {dy, b}});
  backward.contribute(node, b, {.op = "mul", .inputs = {dy, a}});
}

} // namespace

std::vector<Operator> mul_family() {
  return {{"mul", infer, form_of, gradient, result_elements}};
}

} // namespace soybean::ops
