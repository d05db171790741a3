// Joining tensors along channels or features (torch.cat of dim 1), a range of them (narrow), and its gradient. The
// joined dim is not split: blocks of the parts are not blocks of the whole.
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

/// [B, C, H, W] or [B, K] like another tensor, with so many channels or features and that spatial size.
Result resized(const Graph& graph, const Node& node, const Tensor& like, std::int64_t channels, std::int64_t spatial) {
  Result result{.shape = like.shape,
                .units = Shape(like.shape.size(), 1),
                .dtype = graph.precision,
                .role = role_of(node),
                .spatial = spatial};
  result.shape[1] = channels;
  result.units[0] = like.units[0];
  if (like.shape.size() == 2) result.units[1] = spatial; // a flattened image is split by whole channels
  return result;
}

void expect_channels(const Graph& graph, const Node& node, const Tensor& x) {
  if (x.shape.size() == 2 || x.shape.size() == 4) return;
  fail("{}: input, got {} dims ({}) expected images or features", where(graph, node), x.shape.size(),
       to_string(x.shape));
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2) fail("{}: inputs, got {} expected at least 2", where(graph, node), node.inputs.size());
  const Tensor& first = input(graph, node, 0);
  expect_channels(graph, node, first);
  Result result = resized(graph, node, first, 0, first.spatial);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& x = input(graph, node, i);
    Shape expected = first.shape;
    if (x.shape.size() == expected.size()) expected[1] = x.shape[1];
    if (x.shape != expected)
      fail("{}: inputs, got shapes {} and {} expected equal ones but for the channels", where(graph, node),
           to_string(first.shape), to_string(x.shape));
    result.shape[1] += x.shape[1];
    result.units[0] = std::lcm(result.units[0], x.units[0]);
    if (x.spatial != result.spatial) result.spatial = 1; // joined plain
  }
  if (result.shape.size() == 2) result.units[1] = result.spatial;
  return {result};
}

/// Attributes begin and size count channels, or features of a flattened image, which then are whole channels.
std::vector<Result> infer_slice(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& x = input(graph, node, 0);
  expect_channels(graph, node, x);
  const std::int64_t begin = node.attributes.integer("begin"), size = node.attributes.integer("size");
  if (begin < 0 || size < 1 || begin > x.shape[1] - size)
    fail("{}: range, got channels {} to {} of {} expected a part of them", where(graph, node), begin, begin + size,
         x.shape[1]);
  const std::int64_t spatial = node.attributes.has("spatial") ? node.attributes.integer("spatial") : x.spatial;
  const bool whole_channels = x.shape.size() == 4 || (begin % x.spatial == 0 && size % spatial == 0);
  if (!whole_channels)
    fail("{}: range, got features {} to {} of a flattened image expected whole channels of {}. take the slice before "
         "the flatten layer",
         where(graph, node), begin, begin + size, x.spatial);
  ensure(x.spatial == 1 || x.spatial == spatial, fmt::format("node '{}' changes the order of an image", node.name));
  return {resized(graph, node, x, size, spatial)};
}

/// Attributes begin, channels and spatial: where dy was in x, and how x is.
std::vector<Result> infer_slice_grad(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  const Tensor& dy = input(graph, node, 0);
  const std::int64_t channels = node.attributes.integer("channels");
  ensure(dy.shape.size() >= 2 && node.attributes.integer("begin") + dy.shape[1] <= channels,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {resized(graph, node, dy, channels, node.attributes.integer("spatial"))};
}

Form form_of(const Graph& graph, const Node& node) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  const std::string dims = rank == 4 ? "b . h w" : "b .";
  std::string text = dims;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) text += ", " + dims;
  return make_form(graph, node,
                   {.text = text + " -> " + dims, .split = and_spatial("b", rank), .replicable = true, .linear = true});
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]);
  std::int64_t begin = 0;
  for (graph::TensorId x : node.inputs) {
    const Tensor part = backward.graph().tensors[x];
    graph::Attributes attributes{{"begin", begin}, {"size", part.shape[1]}};
    if (part.spatial != backward.graph().tensors[dy].spatial) attributes.set("spatial", part.spatial);
    backward.contribute(node, x, {.op = "slice", .attributes = attributes, .inputs = {dy}});
    begin += part.shape[1];
  }
}

void gradient_slice(Backward& backward, const Node& node) {
  const Tensor& x = backward.graph().tensors[node.inputs[0]];
  backward.contribute(
      node, node.inputs[0],
      {.op = "slice_grad",
       .attributes = {{"begin", node.attributes.integer("begin")}, {"channels", x.shape[1]}, {"spatial", x.spatial}},
       .inputs = {backward.gradient_of(node.outputs[0])}});
}

double no_flops(const Graph&, const Node&) {
  return 0;
}

} // namespace

std::vector<Operator> concat_family() {
  return {{"concat", infer, form_of, gradient, no_flops},
          {"slice", infer_slice, form_of, gradient_slice, no_flops},
          {"slice_grad", infer_slice_grad, form_of, nullptr, no_flops}};
}

} // namespace soybean::ops
