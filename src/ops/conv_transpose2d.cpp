// Transposed convolution of images and its gradients, as torch.nn.ConvTranspose2d. It is what conv2d does backward to
// its input: weight [C, O/groups, R, S] is that of a convolution from O channels to C, whose gradient by the input is
// this operator, and which is this operator's gradient.
#include "base/error.hpp"
#include "ops/building.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;
using graph::TensorId;

/// Attributes: those of the convolution, and input_size, that of the larger image.
Result larger_image(const Graph& graph, const Node& node, const Tensor& x, const Tensor& weight) {
  const std::int64_t groups = node.attributes.integer("groups");
  const Shape& size = node.attributes.integers("input_size");
  ensure(x.shape.size() == 4 && weight.shape.size() == 4 && x.shape[1] == weight.shape[0] && size.size() == 2 &&
             window_output(graph, node, size) == Shape({x.shape[2], x.shape[3]}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  const Shape y{x.shape[0], weight.shape[1] * groups, size[0], size[1]};
  return {.shape = y,
          .units = {x.units[0], groups > 1 ? weight.shape[1] : weight.units[1], 1, 1},
          .dtype = graph.precision,
          .role = role_of(node),
          .spatial = image_spatial(y)};
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  return {larger_image(graph, node, input(graph, node, 0), input(graph, node, 1))};
}

std::vector<Result> infer_grad_input(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &weight = input(graph, node, 1);
  ensure(dy.shape.size() == 4 && weight.shape.size() == 4 &&
             dy.shape[1] == weight.shape[1] * node.attributes.integer("groups"),
         fmt::format("the operands of node '{}' do not fit", node.name));
  const Shape size = window_output(graph, node, {dy.shape[2], dy.shape[3]});
  const Shape dx{dy.shape[0], weight.shape[0], size[0], size[1]};
  return {{.shape = dx,
           .units = {dy.units[0], weight.units[0], 1, 1},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = image_spatial(dx)}};
}

std::vector<Result> infer_grad_weight(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &x = input(graph, node, 0), &dy = input(graph, node, 1);
  const std::int64_t groups = node.attributes.integer("groups");
  const Shape& kernel = node.attributes.integers("kernel");
  ensure(dy.shape.size() == 4 && x.shape.size() == 4 && dy.shape[0] == x.shape[0] &&
             window_output(graph, node, {dy.shape[2], dy.shape[3]}) == Shape({x.shape[2], x.shape[3]}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {x.shape[1], dy.shape[1] / groups, kernel[0], kernel[1]},
           .units = {x.units[1], groups > 1 ? 1 : dy.units[1], 1, 1},
           .dtype = graph.precision,
           .role = role_of(node)}};
}

Form form_of(const Graph& graph, const Node& node, FormText form, std::string grouped) {
  const std::int64_t groups = node.attributes.integer("groups");
  form.split = "b c o h w";
  if (groups == 1) return make_form(graph, node, form);
  form.text = std::move(grouped);
  form.split = "b g h w";
  form.groups = groups;
  return make_form(graph, node, form);
}

/// Here the windows are positions of the operand, and slide over the result.
Form form_forward(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(output(graph, node), input(graph, node, 0));
  return form_of(
      graph, node,
      {.text = "b c ~h ~w, c o r s -> b o h w", .halos = {window_halos(node, tiling::Reach::windows, sizes)}},
      "b g ~h ~w, g o r s -> b g h w");
}

Form form_grad_input(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(input(graph, node, 0), output(graph, node));
  return form_of(
      graph, node,
      {.text = "b o ~h ~w, c o r s -> b c h w", .halos = {window_halos(node, tiling::Reach::positions, sizes)}},
      "b g ~h ~w, g o r s -> b g h w");
}

Form form_grad_weight(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(input(graph, node, 1), input(graph, node, 0));
  return form_of(
      graph, node,
      {.text = "b c h w, b o ~h ~w -> c o r s", .halos = {{}, window_halos(node, tiling::Reach::positions, sizes)}},
      "b g h w, b g ~h ~w -> g o r s");
}

void gradient(Backward& backward, const Node& node) {
  const TensorId dy = backward.gradient_of(node.outputs[0]), x = node.inputs[0], weight = node.inputs[1];
  backward.contribute(node, x,
                      {.op = "conv_transpose2d_grad_input", .attributes = node.attributes, .inputs = {dy, weight}});
  backward.contribute(node, weight,
                      {.op = "conv_transpose2d_grad_weight", .attributes = node.attributes, .inputs = {x, dy}});
}

/// 2·B·C·H·W·(O/groups)·R·S, for the forward and both gradients alike.
double conv_flops(const Shape& x, const Shape& weight) {
  return 2.0 * static_cast<double>(volume(x)) * static_cast<double>(weight[1] * weight[2] * weight[3]);
}

double flops_forward(const Graph& graph, const Node& node) {
  return conv_flops(input(graph, node, 0).shape, input(graph, node, 1).shape);
}

double flops_grad_input(const Graph& graph, const Node& node) {
  return conv_flops(output(graph, node).shape, input(graph, node, 1).shape);
}

double flops_grad_weight(const Graph& graph, const Node& node) {
  return conv_flops(input(graph, node, 0).shape, output(graph, node).shape);
}

void check(const std::string& at, const Shape& image, const ConvTranspose2dOptions& options) {
  constexpr std::int64_t most = std::int64_t{1} << 24; // as the windows of other operators
  const auto within = [&](std::string_view key, const Pair& pair, std::int64_t least) {
    for (std::int64_t size : pair)
      if (size < least || size > most)
        fail("{}: {}, got {} expected between {} and {}", at, key, to_string(shape_of(pair)), least, most);
  };
  if (options.channels < 1) fail("{}: channels, got {} expected at least 1", at, options.channels);
  within("kernel", options.kernel, 1);
  within("stride", options.stride, 1);
  within("padding", options.padding, 0);
  within("dilation", options.dilation, 1);
  within("output_padding", options.output_padding, 0);
  if (image.size() != 4)
    fail("{}: input, got {} dims ({}) expected 4. a convolution needs images of channels, height and width", at,
         image.size(), to_string(image));
  if (options.groups < 1 || image[1] % options.groups != 0)
    fail("{}: groups, got {} with {} input channels expected a divisor of them", at, options.groups, image[1]);
  if (options.channels % options.groups != 0)
    fail("{}: groups, got {} with {} channels expected a divisor of them", at, options.groups, options.channels);
  for (std::size_t d = 0; d < 2; ++d)
    if (options.output_padding[d] >= options.stride[d])
      fail("{}: output_padding, got {} expected less than the stride {}", at,
           to_string(shape_of(options.output_padding)), to_string(shape_of(options.stride)));
}

/// [H', W'] of the result. Throws Error when padding cuts everything off.
Shape result_size(const std::string& at, const Shape& image, const ConvTranspose2dOptions& o) {
  Shape size(2);
  for (std::size_t d = 0; d < 2; ++d) {
    size[d] = (image[2 + d] - 1) * o.stride[d] - 2 * o.padding[d] + o.dilation[d] * (o.kernel[d] - 1) +
              o.output_padding[d] + 1;
    if (size[d] < 1)
      fail("{}: padding, got {} expected less: nothing is left of a {} image", at, to_string(shape_of(o.padding)),
           to_string(Shape{image[2], image[3]}));
  }
  return size;
}

} // namespace

std::vector<Operator> conv_transpose2d_family() {
  return {{"conv_transpose2d", infer, form_forward, gradient, flops_forward},
          {"conv_transpose2d_grad_input", infer_grad_input, form_grad_input, nullptr, flops_grad_input},
          {"conv_transpose2d_grad_weight", infer_grad_weight, form_grad_weight, nullptr, flops_grad_weight, {}, true}};
}

TensorId conv_transpose2d_layer(Graph& graph, const std::string& name, TensorId x,
                                const ConvTranspose2dOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "conv_transpose2d");
  const std::string at = where(name, "conv_transpose2d");
  const Tensor image = graph.tensors[x];
  check(at, image.shape, options);
  const Shape size = result_size(at, image.shape, options);
  const std::int64_t groups = options.groups;
  const Shape shape{image.shape[1], options.channels / groups, options.kernel[0], options.kernel[1]};
  expect_size(at, "weight", shape);
  const double window = static_cast<double>(shape[2] * shape[3]); // fans as torch.nn.init counts them
  const Fan fan{static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
  const TensorId weight = parameter(graph, name, "conv_transpose2d",
                                    {.name = "weight",
                                     .shape = shape,
                                     .units = {groups > 1 ? shape[0] / groups : image.units[1], 1, 1, 1},
                                     .init = weight_initializer(options.init, fan)});
  const TensorId y = append(graph, {.name = name,
                                    .op = "conv_transpose2d",
                                    .attributes = {{"kernel", shape_of(options.kernel)},
                                                   {"stride", shape_of(options.stride)},
                                                   {"padding", shape_of(options.padding)},
                                                   {"dilation", shape_of(options.dilation)},
                                                   {"groups", groups},
                                                   {"input_size", size}},
                                    .inputs = {x, weight},
                                    .layer = layer})
                         .front();
  return options.bias ? add_bias(graph, name, y, bias_initializer(options.init, fan)) : y;
}

} // namespace soybean::ops
