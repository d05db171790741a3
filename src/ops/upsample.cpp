// Larger (or smaller) images by the nearest pixel or bilinear weights, as torch.nn.Upsample, and the gradient.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

Result image(const Graph& graph, const Node& node, const Shape& size) {
  const Tensor& x = input(graph, node, 0);
  ensure(size.size() == 2, fmt::format("a size of node '{}' is not a pair", node.name));
  const Shape shape{x.shape[0], x.shape[1], size[0], size[1]};
  return {.shape = shape,
          .units = {x.units[0], x.units[1], 1, 1},
          .dtype = graph.precision,
          .role = role_of(node),
          .spatial = image_spatial(shape)};
}

/// Attributes: size [H', W'], bilinear and align_corners (0 or 1).
std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_rank(graph, node, 0, 4, "only images can be made larger");
  return {image(graph, node, node.attributes.integers("size"))};
}

/// The same attributes, and input_size [H, W].
std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& dy = input(graph, node, 0);
  ensure(dy.shape.size() == 4 && Shape({dy.shape[2], dy.shape[3]}) == node.attributes.integers("size"),
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {image(graph, node, node.attributes.integers("input_size"))};
}

Form form_of(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h w -> b c h' w'", .split = "b c", .linear = true});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h' w' -> b c h w", .split = "b c", .linear = true});
}

void gradient(Backward& backward, const Node& node) {
  const Tensor& x = backward.graph().tensors[node.inputs[0]];
  graph::Attributes attributes = node.attributes;
  attributes.set("input_size", Shape{x.shape[2], x.shape[3]});
  backward.contribute(
      node, node.inputs[0],
      {.op = "upsample_grad", .attributes = attributes, .inputs = {backward.gradient_of(node.outputs[0])}});
}

/// A multiply-add for each of the four pixels a bilinear one is made of.
double flops_of(const Graph& graph, const Node& node) {
  const Tensor& larger = node.op == "upsample" ? output(graph, node) : input(graph, node, 0);
  return node.attributes.integer("bilinear") == 1 ? 8.0 * static_cast<double>(volume(larger.shape)) : 0;
}

} // namespace

std::vector<Operator> upsample_family() {
  return {{"upsample", infer, form_of, gradient, flops_of},
          {"upsample_grad", infer_grad, form_grad, nullptr, flops_of}};
}

} // namespace soybean::ops
