// Convolution of images, its gradients by input and by weight. Formulas as torch.nn.Conv2d (cross-correlation).
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

void check_channels(const Graph& graph, const Node& node, const Tensor& x, const Tensor& weight) {
  const std::int64_t groups = node.attributes.integer("groups"), channels = x.shape[1];
  if (groups < 1 || channels % groups != 0)
    fail("{}: groups, got {} with {} input channels expected a divisor of them", where(graph, node), groups, channels);
  ensure(weight.shape.size() == 4, "the weight of a convolution has 4 dims");
  if (weight.shape[0] % groups != 0)
    fail("{}: groups, got {} with {} channels expected a divisor of them", where(graph, node), groups, weight.shape[0]);
  const Shape& kernel = node.attributes.integers("kernel");
  const Shape expected{weight.shape[0], channels / groups, kernel[0], kernel[1]};
  if (weight.shape != expected)
    fail("{}: weight, got shape {} expected {}", where(graph, node), to_string(weight.shape), to_string(expected));
  ensure(groups > 1 ? weight.units[0] % (weight.shape[0] / groups) == 0 : weight.units[1] == x.units[1],
         fmt::format("the units of weight '{}' do not fit its input", weight.name));
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  expect_rank(graph, node, 0, 4, "a convolution needs images of channels, height and width");
  const Tensor &x = input(graph, node, 0), &weight = input(graph, node, 1);
  const Shape size = window_output(graph, node, {x.shape[2], x.shape[3]});
  check_channels(graph, node, x, weight);
  const Shape y{x.shape[0], weight.shape[0], size[0], size[1]};
  return {{.shape = y,
           .units = {x.units[0], weight.units[0], 1, 1},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = image_spatial(y)}};
}

std::vector<Result> infer_grad_input(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &weight = input(graph, node, 1);
  const std::int64_t groups = node.attributes.integer("groups");
  const Shape& size = node.attributes.integers("input_size");
  ensure(dy.shape.size() == 4 && weight.shape.size() == 4 && dy.shape[1] == weight.shape[0] && size.size() == 2 &&
             window_output(graph, node, size) == Shape({dy.shape[2], dy.shape[3]}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  const Shape dx{dy.shape[0], weight.shape[1] * groups, size[0], size[1]};
  const std::int64_t unit = groups > 1 ? node.attributes.integer("input_unit") : weight.units[1];
  return {{.shape = dx,
           .units = {dy.units[0], unit, 1, 1},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = image_spatial(dx)}};
}

std::vector<Result> infer_grad_weight(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  const std::int64_t groups = node.attributes.integer("groups");
  const Shape& kernel = node.attributes.integers("kernel");
  ensure(dy.shape.size() == 4 && x.shape.size() == 4 && dy.shape[0] == x.shape[0] && groups >= 1 &&
             window_output(graph, node, {x.shape[2], x.shape[3]}) == Shape({dy.shape[2], dy.shape[3]}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {dy.shape[1], x.shape[1] / groups, kernel[0], kernel[1]},
           .units = {dy.units[1], groups > 1 ? 1 : x.units[1], 1, 1},
           .dtype = graph.precision,
           .role = role_of(node)}};
}

/// With one group: batch, in- and out-channels, rows and columns. With several: batch, groups, rows and columns; a
/// group keeps all its channels.
Form conv_form(const Graph& graph, const Node& node, FormText form, std::string grouped) {
  const std::int64_t groups = node.attributes.integer("groups");
  form.split = "b o c h w";
  if (groups == 1) return make_form(graph, node, form);
  form.text = std::move(grouped);
  form.split = "b g h w";
  form.groups = groups;
  return make_form(graph, node, form);
}

Form form_forward(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(input(graph, node, 0), output(graph, node));
  return conv_form(
      graph, node,
      {.text = "b c ~h ~w, o c r s -> b o h w", .halos = {window_halos(node, tiling::Reach::positions, sizes)}},
      "b g ~h ~w, g c r s -> b g h w");
}

Form form_grad_input(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(output(graph, node), input(graph, node, 0));
  return conv_form(
      graph, node,
      {.text = "b o ~h ~w, o c r s -> b c h w", .halos = {window_halos(node, tiling::Reach::windows, sizes)}},
      "b g ~h ~w, g c r s -> b g h w");
}

Form form_grad_weight(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(input(graph, node, 1), input(graph, node, 0));
  return conv_form(
      graph, node,
      {.text = "b o h w, b c ~h ~w -> o c r s", .halos = {{}, window_halos(node, tiling::Reach::positions, sizes)}},
      "b g h w, b g ~h ~w -> g c r s");
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]), x = node.inputs[0], weight = node.inputs[1];
  const Tensor& image = backward.graph().tensors[x];
  graph::Attributes attributes = node.attributes;
  attributes.set("input_size", Shape{image.shape[2], image.shape[3]});
  if (node.attributes.integer("groups") > 1) attributes.set("input_unit", image.units[1]);
  backward.contribute(node, x, {.op = "conv2d_grad_input", .attributes = attributes, .inputs = {dy, weight}});
  backward.contribute(node, weight, {.op = "conv2d_grad_weight", .attributes = node.attributes, .inputs = {dy, x}});
}

/// 2·B·O·H'·W'·(C/groups)·R·S, for the forward and both gradients alike.
double conv_flops(const Shape& y, const Shape& weight) {
  return 2.0 * static_cast<double>(volume(y)) * static_cast<double>(weight[1] * weight[2] * weight[3]);
}

double flops_forward(const Graph& graph, const Node& node) {
  return conv_flops(output(graph, node).shape, input(graph, node, 1).shape);
}

double flops_grad_input(const Graph& graph, const Node& node) {
  return conv_flops(input(graph, node, 0).shape, input(graph, node, 1).shape);
}

double flops_grad_weight(const Graph& graph, const Node& node) {
  return conv_flops(input(graph, node, 0).shape, output(graph, node).shape);
}

} // namespace

std::vector<Operator> conv2d_family() {
  return {{"conv2d", infer, form_forward, gradient, flops_forward},
          {"conv2d_grad_input", infer_grad_input, form_grad_input, nullptr, flops_grad_input},
          {"conv2d_grad_weight", infer_grad_weight, form_grad_weight, nullptr, flops_grad_weight, {}, true}};
}

} // namespace soybean::ops
