#include "ops/common.hpp"

#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Role;
using graph::Tensor;

constexpr std::int64_t most_elements = std::int64_t{1} << 48;
constexpr std::int64_t most_window = std::int64_t{1} << 24;

/// A list of window sizes, each within [least, 2^24].
const Shape& window_sizes(const Graph& graph, const Node& node, std::string_view name, std::int64_t least) {
  const Shape& sizes = node.attributes.integers(name);
  ensure(sizes.size() == 2 || (name == "padding" && sizes.size() == 4),
         fmt::format("attribute '{}' of node '{}' is not a pair", name, node.name));
  for (std::int64_t size : sizes)
    if (size < least || size > most_window)
      fail("{}: {}, got {} expected between {} and {}", where(graph, node), name, to_string(sizes), least, most_window);
  return sizes;
}

} // namespace

std::string where(const Graph& graph, const Node& node) {
  if (node.layer == graph::none) return fmt::format("layer '{}' ({})", node.name, node.op);
  return fmt::format("layer '{}' ({})", graph.layers[node.layer].name, graph.layers[node.layer].op);
}

const Tensor& input(const Graph& graph, const Node& node, std::size_t i) {
  ensure(i < node.inputs.size(), fmt::format("node '{}' has no input {}", node.name, i));
  return graph.tensors[node.inputs[i]];
}

const Tensor& output(const Graph& graph, const Node& node, std::size_t i) {
  ensure(i < node.outputs.size(), fmt::format("node '{}' has no output {}", node.name, i));
  return graph.tensors[node.outputs[i]];
}

void expect_inputs(const Node& node, std::size_t count) {
  ensure(node.inputs.size() == count,
         fmt::format("node '{}' ({}) has {} inputs, not {}", node.name, node.op, node.inputs.size(), count));
}

void expect_rank(const Graph& graph, const Node& node, std::size_t i, std::size_t rank, std::string_view hint) {
  const Shape& shape = input(graph, node, i).shape;
  if (shape.size() == rank) return;
  fail("{}: input, got {} dims ({}) expected {}. {}", where(graph, node), shape.size(), to_string(shape), rank, hint);
}

void expect_sequence(std::string_view where, const Shape& shape) {
  if (!is_sequence(shape))
    fail("{}: input, got shape {} expected a sequence, as an embedding layer gives", where, to_string(shape));
}

void expect_size(std::string_view where, std::string_view what, const Shape& shape) {
  std::int64_t elements = 1;
  for (std::int64_t extent : shape) {
    if (extent < 1) fail("{}: {}, got shape {} expected positive sizes", where, what, to_string(shape));
    if (extent > most_elements / elements)
      fail("{}: {}, got shape {} expected at most 2^48 elements", where, what, to_string(shape));
    elements *= extent;
  }
}

std::int64_t image_spatial(const Shape& shape) {
  return shape.size() == 4 ? shape[2] * shape[3] : 1;
}

bool is_sequence(const Shape& shape) {
  return shape.size() == 4 && shape[3] == 1;
}

Shape label_shape(const Shape& logits) {
  return is_sequence(logits) ? Shape{logits[0], logits[2]} : Shape{logits[0]};
}

bool any_batch(const Graph& graph, const Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](graph::TensorId t) { return has_batch(graph, t); });
}

bool has_batch(const Graph& graph, graph::TensorId id) {
  const Tensor& tensor = graph.tensors[id];
  switch (tensor.role) {
  case Role::input:
  case Role::label:
  case Role::partner_label:
  case Role::share:
  case Role::target:
  case Role::sample_weight:
    return true;
  case Role::hyper:
  case Role::parameter:
  case Role::state:
  case Role::metric:
  case Role::control:
    return false;
  case Role::activation:
  case Role::gradient:
    break;
  }
  const Node& producer = graph.nodes[tensor.producer];
  return !find(producer.op).sums_batch && any_batch(graph, producer);
}

Role role_of(const Node& node) {
  return node.phase == graph::Phase::backward ? Role::gradient : Role::activation;
}

std::string dims_text(std::size_t rank, bool batch) {
  static constexpr std::string_view samples[] = {"1", "b", "b c", "b c h", "b c h w"};
  static constexpr std::string_view plain[] = {"1", "d0", "d0 d1", "d0 d1 d2", "d0 d1 d2 d3"};
  ensure(rank <= 4, "a tensor of more than 4 dims");
  return std::string(batch ? samples[rank] : plain[rank]);
}

Shape window_output(const Graph& graph, const Node& node, const Shape& image) {
  const Shape& kernel = window_sizes(graph, node, "kernel", 1);
  const Shape& stride = window_sizes(graph, node, "stride", 1);
  const Shape& padding = window_sizes(graph, node, "padding", 0);
  const bool dilated = node.attributes.has("dilation");
  const Shape dilation = dilated ? window_sizes(graph, node, "dilation", 1) : Shape{1, 1};
  const bool ceil = node.attributes.has("ceil_mode") && node.attributes.integer("ceil_mode") == 1;
  Shape reach(2), padded(2), result(2);
  for (std::size_t i = 0; i < 2; ++i) {
    reach[i] = dilation[i] * (kernel[i] - 1) + 1;
    padded[i] = image[i] + padding[i] + padding[padding.size() - 2 + i];
    result[i] = (padded[i] - reach[i] + (ceil ? stride[i] - 1 : 0)) / stride[i] + 1;
    if (ceil && (result[i] - 1) * stride[i] >= image[i] + padding[i]) --result[i];
  }
  if (reach[0] > padded[0] || reach[1] > padded[1])
    fail("{}: kernel, got {}{} on a padded {} image expected at most {}. add padding or drop a pooling layer",
         where(graph, node), to_string(kernel),
         reach == kernel ? std::string() : fmt::format(" ({} with dilation)", to_string(reach)), to_string(padded),
         to_string(padded));
  return result;
}

OperandHalos window_halos(const Node& node, tiling::Reach reach, const WindowSizes& sizes) {
  const Shape& padding = node.attributes.integers("padding");
  OperandHalos halos;
  for (std::size_t d = 0; d < 2; ++d)
    halos[d] = {.reach = reach,
                .other = static_cast<std::int32_t>(reach == tiling::Reach::windows ? sizes.image[d] : sizes.windows[d]),
                .stride = static_cast<std::int32_t>(node.attributes.integers("stride")[d]),
                .kernel = static_cast<std::int32_t>(node.attributes.integers("kernel")[d]),
                .dilation = node.attributes.has("dilation")
                                ? static_cast<std::int32_t>(node.attributes.integers("dilation")[d])
                                : 1,
                .padding = static_cast<std::int32_t>(padding[d])};
  return halos;
}

std::string and_spatial(std::string_view others, std::size_t rank) {
  return std::string(others) + (rank == 4 ? " h w" : "");
}

Form elementwise_form(const Graph& graph, const Node& node, bool linear, int hyper) {
  const bool batch = any_batch(graph, node);
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), batch);
  std::string text;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    text += (i ? ", " : "") + (static_cast<int>(i) == hyper ? std::string(".") : dims);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) text += (i ? ", " : " -> ") + dims;
  const std::string split = batch ? and_spatial("b c", input(graph, node, 0).shape.size()) : "d0 d1";
  return make_form(graph, node, {.text = text, .split = split, .linear = linear});
}

Result elementwise_result(const Graph& graph, const Node& node, std::size_t operands) {
  const Tensor& first = input(graph, node, 0);
  Shape units = first.units;
  for (std::size_t i = 1; i < operands; ++i) {
    const Tensor& other = input(graph, node, i);
    if (other.shape != first.shape)
      fail("{}: inputs, got shapes {} and {} expected equal ones", where(graph, node), to_string(first.shape),
           to_string(other.shape));
    if (other.spatial != first.spatial)
      fail("{}: inputs, got spatial sizes {} and {} expected equal ones. joining a flattened image and a plain vector "
           "is not supported yet",
           where(graph, node), first.spatial, other.spatial);
    for (std::size_t d = 0; d < units.size(); ++d) units[d] = std::lcm(units[d], other.units[d]);
  }
  for (std::size_t d = 0; d < units.size(); ++d) units[d] = std::min(units[d], first.shape[d]);
  return {
      .shape = first.shape, .units = units, .dtype = graph.precision, .role = role_of(node), .spatial = first.spatial};
}

std::vector<Result> infer_unary(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  return {elementwise_result(graph, node, 1)};
}

std::vector<Result> infer_binary(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  return {elementwise_result(graph, node, 2)};
}

double result_elements(const Graph& graph, const Node& node) {
  return static_cast<double>(volume(output(graph, node).shape));
}

} // namespace soybean::ops
