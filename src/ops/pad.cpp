// Zeros around images (torch.nn.ZeroPad2d), also in front of convolutions whose padding is not the same on both sides,
// and the gradient, which cuts them off.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

constexpr std::int64_t most_padding = std::int64_t{1} << 24;

/// The image with `sign` times the attribute padding [top, left, bottom, right] more around it.
Result resized(const Graph& graph, const Node& node, std::int64_t sign) {
  const Tensor& x = input(graph, node, 0);
  const Shape& p = node.attributes.integers("padding");
  ensure(p.size() == 4, fmt::format("attribute 'padding' of node '{}' is not four sizes", node.name));
  for (std::int64_t size : p)
    if (size < 0 || size > most_padding)
      fail("{}: padding, got {} expected between 0 and {}", where(graph, node), graph::to_string(graph::Attribute(p)),
           most_padding);
  const Shape shape{x.shape[0], x.shape[1], x.shape[2] + sign * (p[0] + p[2]), x.shape[3] + sign * (p[1] + p[3])};
  return {.shape = shape,
          .units = {x.units[0], x.units[1], 1, 1},
          .dtype = graph.precision,
          .role = role_of(node),
          .spatial = image_spatial(shape)};
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_rank(graph, node, 0, 4, "padding needs images of channels, height and width");
  return {resized(graph, node, 1)};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  return {resized(graph, node, -1)};
}

Form form_of(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h w -> b c h' w'", .split = "b c", .linear = true});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h' w' -> b c h w", .split = "b c", .linear = true});
}

void gradient(Backward& backward, const Node& node) {
  backward.contribute(
      node, node.inputs[0],
      {.op = "pad_grad", .attributes = node.attributes, .inputs = {backward.gradient_of(node.outputs[0])}});
}

double no_flops(const Graph&, const Node&) {
  return 0;
}

} // namespace

std::vector<Operator> pad_family() {
  return {{"pad", infer, form_of, gradient, no_flops}, {"pad_grad", infer_grad, form_grad, nullptr, no_flops}};
}

} // namespace soybean::ops
