// New shapes for the same elements of a sample (torch.reshape), and other orders of an image's dims (torch.permute).
// Images are stored NHWC, so both move the elements.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

/// Elements of one channel of [B, C, H, W], which are H·W elements of [B, K].
std::int64_t channel_size(const Shape& image) {
  return image[2] * image[3];
}

/// Whether blocks of whole channels stay blocks: one side is flat, or the channels are the same.
bool keeps_channels(const Shape& x, const Shape& y) {
  return x.size() != y.size() || x[1] == y[1];
}

/// Attributes: tail, the dims of y after the first; spatial, y's (when it is not an image).
std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& x = input(graph, node, 0);
  const Shape& tail = node.attributes.integers("tail");
  Shape shape{x.shape[0]};
  shape.insert(shape.end(), tail.begin(), tail.end());
  ensure(shape.size() == 2 || shape.size() == 4, fmt::format("node '{}' makes neither image nor features", node.name));
  if (volume(shape) != volume(x.shape))
    fail("{}: shape, got {} expected {} elements as the input's {} has", where(graph, node), to_string(tail),
         volume(x.shape) / x.shape[0], to_string(Shape(x.shape.begin() + 1, x.shape.end())));
  const std::int64_t spatial = shape.size() == 4 ? channel_size(shape) : node.attributes.integer("spatial");
  Shape units{x.units[0], 1};
  if (shape.size() == 2)
    units[1] = x.shape.size() == 4 ? std::min(shape[1], std::lcm(spatial, channel_size(x.shape))) : spatial;
  units.resize(shape.size(), 1);
  return {{.shape = shape, .units = units, .dtype = graph.precision, .role = role_of(node), .spatial = spatial}};
}

Form form_of(const Graph& graph, const Node& node) {
  const Shape &x = input(graph, node, 0).shape, &y = output(graph, node).shape;
  const bool keeps = keeps_channels(x, y);
  const std::string channels = keeps ? "b c" : "b .";
  return make_form(
      graph, node,
      {.text = channels + (x.size() == 4 ? " h w -> " : " -> ") + channels + (y.size() == 4 ? " h' w'" : ""),
       .split = keeps ? "b c" : "b",
       .linear = true});
}

void gradient(Backward& backward, const Node& node) {
  const Tensor& x = backward.graph().tensors[node.inputs[0]];
  backward.contribute(node, node.inputs[0],
                      {.op = "reshape",
                       .attributes = {{"tail", Shape(x.shape.begin() + 1, x.shape.end())}, {"spatial", x.spatial}},
                       .inputs = {backward.gradient_of(node.outputs[0])}});
}

/// Attribute dims: dim d of y is dim dims[d] of x.
std::vector<Result> infer_permute(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_rank(graph, node, 0, 4, "only images have dims to put in another order");
  const Tensor& x = input(graph, node, 0);
  const Shape& dims = node.attributes.integers("dims");
  Shape sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != Shape{0, 1, 2, 3} || dims[0] != 0)
    fail("{}: dims, got {} expected 0 (the batch), then 1, 2 and 3 in any order", where(graph, node),
         graph::to_string(graph::Attribute(dims)));
  Result result{.shape = Shape(4), .units = Shape(4, 1), .dtype = graph.precision, .role = role_of(node)};
  for (std::size_t d = 0; d < 4; ++d) result.shape[d] = x.shape[static_cast<std::size_t>(dims[d])];
  result.units[0] = x.units[0];
  if (dims[1] == 1) result.units[1] = x.units[1];
  result.spatial = image_spatial(result.shape);
  return {result};
}

Form form_permute(const Graph& graph, const Node& node) {
  static constexpr std::string_view names[] = {"b", "c", "h", "w"};
  const Shape& dims = node.attributes.integers("dims");
  std::string text = "b c h w ->";
  for (std::int64_t d : dims) text += " " + std::string(names[d]);
  return make_form(graph, node, {.text = text, .split = dims[1] == 1 ? "b c" : "b", .linear = true});
}

void gradient_permute(Backward& backward, const Node& node) {
  const Shape& dims = node.attributes.integers("dims");
  Shape inverse(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d)
    inverse[static_cast<std::size_t>(dims[d])] = static_cast<std::int64_t>(d);
  backward.contribute(
      node, node.inputs[0],
      {.op = "permute", .attributes = {{"dims", inverse}}, .inputs = {backward.gradient_of(node.outputs[0])}});
}

double no_flops(const Graph&, const Node&) {
  return 0;
}

} // namespace

std::vector<Operator> reshape_family() {
  return {{"reshape", infer, form_of, gradient, no_flops},
          {"permute", infer_permute, form_permute, gradient_permute, no_flops}};
}

} // namespace soybean::ops
