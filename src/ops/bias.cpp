// One bias per channel (or feature), added to every sample and position; its gradient sums over them.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <algorithm>
#include <numeric>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &x = input(graph, node, 0), &bias = input(graph, node, 1);
  if (x.shape.size() < 2)
    fail("{}: input, got {} dims ({}) expected at least 2", where(graph, node), x.shape.size(), to_string(x.shape));
  if (bias.shape != Shape{x.shape[1]})
    fail("{}: bias, got shape {} expected {}", where(graph, node), to_string(bias.shape), x.shape[1]);
  if (x.shape.size() == 2 && x.spatial != 1)
    fail("{}: input, got a flattened image expected an image or a plain vector. a bias on it is not supported yet",
         where(graph, node));
  Shape units = x.units;
  units[1] = std::min(x.shape[1], std::lcm(x.units[1], bias.units[0]));
  return {{.shape = x.shape, .units = units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial}};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& dy = input(graph, node, 0);
  ensure(dy.shape.size() >= 2, "bias_grad of a vector");
  return {{.shape = {dy.shape[1]}, .units = {dy.units[1]}, .dtype = graph.precision, .role = role_of(node)}};
}

Form form_forward(const Graph& graph, const Node& node) {
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), true);
  return make_form(graph, node,
                   {.text = dims + ", c -> " + dims, .split = and_spatial("b c", output(graph, node).shape.size())});
}

Form form_grad(const Graph& graph, const Node& node) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  return make_form(graph, node, {.text = dims_text(rank, true) + " -> c", .split = and_spatial("b c", rank)});
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]);
  backward.contribute(node.inputs[0], dy);
  backward.contribute(node, node.inputs[1], {.op = "bias_grad", .inputs = {dy}});
}

double flops_grad(const Graph& graph, const Node& node) {
  return static_cast<double>(volume(input(graph, node, 0).shape));
}

} // namespace

std::vector<Operator> bias_family() {
  return {{"bias", infer, form_forward, gradient, result_elements, {0}},
          {"bias_grad", infer_grad, form_grad, nullptr, flops_grad, {}, true}};
}

} // namespace soybean::ops
