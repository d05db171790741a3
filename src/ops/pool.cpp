// Max, average and global average pooling of images, as torch.nn.MaxPool2d, AvgPool2d and AdaptiveAvgPool2d(1).
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

Result image_result(const Graph& graph, const Node& node, const Tensor& like, std::int64_t height, std::int64_t width) {
  const Shape shape{like.shape[0], like.shape[1], height, width};
  return {.shape = shape,
          .units = {like.units[0], like.units[1], 1, 1},
          .dtype = graph.precision,
          .role = role_of(node),
          .spatial = image_spatial(shape)};
}

/// Dilated windows at an edge may step over a small image: refused, for there is no maximum of nothing.
void expect_pixels(const Graph& graph, const Node& node, const Shape& image, const Shape& windows) {
  if (!node.attributes.has("dilation")) return;
  const Shape &kernel = node.attributes.integers("kernel"), &stride = node.attributes.integers("stride");
  const Shape &padding = node.attributes.integers("padding"), &dilation = node.attributes.integers("dilation");
  for (std::size_t d = 0; d < 2; ++d)
    for (std::int64_t i = 0; i < windows[d]; ++i) {
      std::int64_t first = i * stride[d] - padding[d];
      const std::int64_t last = first + dilation[d] * (kernel[d] - 1);
      if (first < 0) first += (dilation[d] - 1 - first) / dilation[d] * dilation[d];
      if (first > last || first >= image[d])
        fail("{}: dilation, got {} on a {} image expected windows with a pixel of it in each", where(graph, node),
             to_string(dilation), to_string(image));
    }
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_rank(graph, node, 0, 4, "pooling needs images of channels, height and width");
  const Tensor& x = input(graph, node, 0);
  const Shape size = window_output(graph, node, {x.shape[2], x.shape[3]});
  const Shape &kernel = node.attributes.integers("kernel"), &padding = node.attributes.integers("padding");
  for (std::size_t i = 0; i < padding.size(); ++i) {
    const std::int64_t dilation = node.attributes.has("dilation") ? node.attributes.integers("dilation")[i % 2] : 1;
    if (2 * padding[i] > dilation * (kernel[i % 2] - 1) + 1)
      fail("{}: padding, got {} expected at most half the kernel {}{}", where(graph, node), to_string(padding),
           to_string(kernel), dilation > 1 ? " with its dilation" : "");
  }
  expect_pixels(graph, node, {x.shape[2], x.shape[3]}, size);
  return {image_result(graph, node, x, size[0], size[1])};
}

std::vector<Result> infer_global(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_rank(graph, node, 0, 4, "pooling needs images of channels, height and width");
  return {image_result(graph, node, input(graph, node, 0), 1, 1)};
}

std::vector<Result> infer_max_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape.size() == 4 && x.shape.size() == 4 && dy.shape[0] == x.shape[0] && dy.shape[1] == x.shape[1] &&
             window_output(graph, node, {x.shape[2], x.shape[3]}) == Shape({dy.shape[2], dy.shape[3]}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {image_result(graph, node, dy, x.shape[2], x.shape[3])};
}

std::vector<Result> infer_average_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& dy = input(graph, node, 0);
  const Shape& size = node.attributes.integers("input_size");
  const Shape pooled = node.op == "global_avg_pool_grad" ? Shape{1, 1} : window_output(graph, node, {size[0], size[1]});
  ensure(dy.shape.size() == 4 && size.size() == 2 && pooled == Shape({dy.shape[2], dy.shape[3]}),
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {image_result(graph, node, dy, size[0], size[1])};
}

Form form_forward(const Graph& graph, const Node& node, bool linear) {
  const WindowSizes sizes = window_sizes(input(graph, node, 0), output(graph, node));
  return make_form(graph, node,
                   {.text = "b c ~h ~w -> b c h w",
                    .split = "b c h w",
                    .linear = linear,
                    .halos = {window_halos(node, tiling::Reach::positions, sizes)}});
}

Form form_max(const Graph& graph, const Node& node) {
  return form_forward(graph, node, false);
}

Form form_average(const Graph& graph, const Node& node) {
  return form_forward(graph, node, true);
}

/// A block of dx needs dy of all windows that reach into it and, to find their maxima again, all of x that these reach.
Form form_max_grad(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(input(graph, node, 1), input(graph, node, 0));
  return make_form(graph, node,
                   {.text = "b c ~h ~w, b c ~h ~w -> b c h w",
                    .split = "b c h w",
                    .halos = {window_halos(node, tiling::Reach::windows, sizes),
                              window_halos(node, tiling::Reach::neighbours, sizes)}});
}

Form form_average_grad(const Graph& graph, const Node& node) {
  const WindowSizes sizes = window_sizes(output(graph, node), input(graph, node, 0));
  return make_form(graph, node,
                   {.text = "b c ~h ~w -> b c h w",
                    .split = "b c h w",
                    .linear = true,
                    .halos = {window_halos(node, tiling::Reach::windows, sizes)}});
}

Form form_global(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c h w -> b c . .", .split = "b c h w", .linear = true});
}

Form form_global_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b c . . -> b c h w", .split = "b c h w", .linear = true});
}

void gradient_max(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0],
                      {.op = "max_pool_grad",
                       .attributes = node.attributes,
                       .inputs = {backward.gradient_of(node.outputs[0]), node.inputs[0]},
                       .twin = backward.id_of(node)});
}

void gradient_average(Backward& backward, const Node& node) {
  const Tensor& x = backward.graph().tensors[node.inputs[0]];
  graph::Attributes attributes = node.attributes;
  attributes.set("input_size", Shape{x.shape[2], x.shape[3]});
  backward.contribute(
      node, node.inputs[0],
      {.op = node.op + "_grad", .attributes = attributes, .inputs = {backward.gradient_of(node.outputs[0])}});
}

/// One operation per pooled element and window position, forward and backward.
double window_flops(const Graph& graph, const Node& node) {
  const bool forward = node.op == "max_pool" || node.op == "avg_pool";
  const Tensor& pooled = forward ? output(graph, node) : input(graph, node, 0);
  return static_cast<double>(volume(pooled.shape)) *
         static_cast<double>(volume(Shape(node.attributes.integers("kernel"))));
}

double global_flops(const Graph& graph, const Node& node) {
  const Tensor& image = node.op == "global_avg_pool" ? input(graph, node, 0) : output(graph, node);
  return static_cast<double>(volume(image.shape));
}

} // namespace

std::vector<Operator> pool_family() {
  return {{"max_pool", infer, form_max, gradient_max, window_flops},
          {"max_pool_grad", infer_max_grad, form_max_grad, nullptr, window_flops},
          {"avg_pool", infer, form_average, gradient_average, window_flops},
          {"avg_pool_grad", infer_average_grad, form_average_grad, nullptr, window_flops},
          {"global_avg_pool", infer_global, form_global, gradient_average, global_flops},
          {"global_avg_pool_grad", infer_average_grad, form_global_grad, nullptr, global_flops}};
}

} // namespace soybean::ops
