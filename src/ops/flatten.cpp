// [B, C, …] → [B, C·…] and back. The physical order stays (spatial size kept), so nothing is moved; blocks of the flat
// dim are whole channels, which is what its unit says.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

/// Elements per channel.
std::int64_t inner(const Shape& shape) {
  return volume(Shape(shape.begin() + 2, shape.end()));
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& x = input(graph, node, 0);
  if (x.shape.size() < 2)
    fail("{}: input, got {} dims ({}) expected at least 2", where(graph, node), x.shape.size(), to_string(x.shape));
  return {{.shape = {x.shape[0], x.shape[1] * inner(x.shape)},
           .units = {x.units[0], x.units[1] * inner(x.shape)},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = x.spatial}};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& dy = input(graph, node, 0);
  const Shape& tail = node.attributes.integers("tail");
  ensure(dy.shape.size() == 2 && volume(tail) == dy.shape[1] && !tail.empty(),
         fmt::format("the operands of node '{}' do not fit", node.name));
  Shape shape{dy.shape[0]}, units{dy.units[0], dy.units[1] / (dy.shape[1] / tail[0])};
  shape.insert(shape.end(), tail.begin(), tail.end());
  units.resize(shape.size(), 1);
  return {{.shape = shape, .units = units, .dtype = graph.precision, .role = role_of(node), .spatial = dy.spatial}};
}

Form form_forward(const Graph& graph, const Node& node) {
  return make_form(
      graph, node,
      {.text = dims_text(input(graph, node, 0).shape.size(), true) + " -> b c", .split = "b c", .linear = true});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(
      graph, node,
      {.text = "b c -> " + dims_text(output(graph, node).shape.size(), true), .split = "b c", .linear = true});
}

void gradient(Backward& backward, const Node& node) {
  const Shape& shape = backward.graph().tensors[node.inputs[0]].shape;
  backward.contribute(node, node.inputs[0],
                      {.op = "flatten_grad",
                       .attributes = {{"tail", Shape(shape.begin() + 1, shape.end())}},
                       .inputs = {backward.gradient_of(node.outputs[0])}});
}

double no_flops(const Graph&, const Node&) {
  return 0;
}

} // namespace

std::vector<Operator> flatten_family() {
  return {{"flatten", infer, form_forward, gradient, no_flops, {0}},
          {"flatten_grad", infer_grad, form_grad, nullptr, no_flops, {0}}};
}

} // namespace soybean::ops
