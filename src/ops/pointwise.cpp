// Activations y = f(x) whose derivative is a function of y: relu, tanh, sigmoid. The backward node runs where y lives.
#include "ops/common.hpp"
#include "ops/families.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  return {elementwise_result(graph, node, 1)};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  return {elementwise_result(graph, node, 2)};
}

Form form_of(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, false);
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId y = node.outputs[0];
  backward.contribute(node, node.inputs[0],
                      {.op = node.op + "_grad", .inputs = {backward.gradient_of(y), y}, .twin = backward.id_of(node)});
}

double twice(const Graph& graph, const Node& node) {
  return 2 * result_elements(graph, node);
}

double four_times(const Graph& graph, const Node& node) {
  return 4 * result_elements(graph, node);
}

} // namespace

std::vector<Operator> pointwise_family() {
  return {{"relu", infer, form_of, gradient, result_elements, {0}},
          {"relu_grad", infer_grad, form_of, nullptr, result_elements, {0}},
          {"tanh", infer, form_of, gradient, four_times, {0}},
          {"tanh_grad", infer_grad, form_of, nullptr, twice, {0}},
          {"sigmoid", infer, form_of, gradient, four_times, {0}},
          {"sigmoid_grad", infer_grad, form_of, nullptr, twice, {0}}};
}

} // namespace soybean::ops
