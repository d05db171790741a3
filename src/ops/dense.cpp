// Matrix product y = x·weightᵀ, its gradients by input and by weight. Weights are [out][in], as torch.nn.Linear.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  expect_rank(graph, node, 0, 2, "put a flatten layer before it");
  const Tensor &x = input(graph, node, 0), &weight = input(graph, node, 1);
  ensure(weight.shape.size() == 2, "the weight of a dense layer has 2 dims");
  if (weight.shape[1] != x.shape[1])
    fail("{}: weight, got {} columns expected {}, one per input feature", where(graph, node), weight.shape[1],
         x.shape[1]);
  ensure(weight.units[1] == x.units[1] && weight.spatial == x.spatial,
         fmt::format("the units or spatial size of weight '{}' do not fit its input", weight.name));
  return {{.shape = {x.shape[0], weight.shape[0]},
           .units = {x.units[0], weight.units[0]},
           .dtype = graph.precision,
           .role = role_of(node)}};
}

std::vector<Result> infer_grad_input(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &weight = input(graph, node, 1);
  ensure(dy.shape.size() == 2 && weight.shape.size() == 2 && dy.shape[1] == weight.shape[0] && dy.spatial == 1,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {dy.shape[0], weight.shape[1]},
           .units = {dy.units[0], weight.units[1]},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = weight.spatial}};
}

std::vector<Result> infer_grad_weight(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape.size() == 2 && x.shape.size() == 2 && dy.shape[0] == x.shape[0] && dy.spatial == 1,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {dy.shape[1], x.shape[1]},
           .units = {dy.units[1], x.units[1]},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = x.spatial}};
}

Form form_forward(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b k, n k -> b n", .split = "b n k"});
}

Form form_grad_input(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b n, n k -> b k", .split = "b n k"});
}

Form form_grad_weight(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b n, b k -> n k", .split = "b n k"});
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]), x = node.inputs[0], weight = node.inputs[1];
  backward.contribute(node, x, {.op = "dense_grad_input", .inputs = {dy, weight}});
  backward.contribute(node, weight, {.op = "dense_grad_weight", .inputs = {dy, x}});
}

double flops_forward(const Graph& graph, const Node& node) {
  return 2.0 * result_elements(graph, node) * static_cast<double>(input(graph, node, 0).shape[1]);
}

double flops_grad_input(const Graph& graph, const Node& node) {
  return 2.0 * result_elements(graph, node) * static_cast<double>(input(graph, node, 0).shape[1]);
}

double flops_grad_weight(const Graph& graph, const Node& node) {
  return 2.0 * result_elements(graph, node) * static_cast<double>(input(graph, node, 0).shape[0]);
}

} // namespace

std::vector<Operator> dense_family() {
  return {{"dense", infer, form_forward, gradient, flops_forward},
          {"dense_grad_input", infer_grad_input, form_grad_input, nullptr, flops_grad_input},
          {"dense_grad_weight", infer_grad_weight, form_grad_weight, nullptr, flops_grad_weight, {}, true}};
}

} // namespace soybean::ops
