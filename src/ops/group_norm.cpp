// Group, layer and rms normalisation as torch.nn.GroupNorm, LayerNorm and RMSNorm: each group of a sample's values is
// brought to mean 0 and variance 1 (rms_norm: to mean square 1), then scaled and, but for rms_norm, shifted. Groups are
// never split, so each rank works out its own statistics.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

#include <cmath>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;
using graph::TensorId;

bool is_rms(const Node& node) {
  return node.op.starts_with("rms_norm");
}
bool is_layer(const Node& node) {
  return node.op.starts_with("layer_norm") || is_rms(node);
}
bool over_channels(const Node& node) {
  return is_rms(node) || node.attributes.text("over") == "channels";
}
/// Operands that are trained: weight and bias.
std::size_t weights_of(const Node& node) {
  return is_rms(node) ? 1 : 2;
}

/// Shape of weight and bias: one per channel, or, for a layer norm of whole samples, one per value of a sample.
Shape affine_shape(const Node& node, const Tensor& x) {
  if (is_layer(node) && !over_channels(node)) return Shape(x.shape.begin() + 1, x.shape.end());
  return {x.shape[1]};
}

void check_input(const Graph& graph, const Node& node, const Tensor& x) {
  if (x.shape.size() != 2 && x.shape.size() != 4)
    fail("{}: input, got {} dims ({}) expected 2 or 4", where(graph, node), x.shape.size(), to_string(x.shape));
  if (x.shape.size() == 2 && x.spatial != 1)
    fail("{}: input, got a flattened image expected an image or a plain vector. put it before the flatten layer",
         where(graph, node));
}

void check_attributes(const Graph& graph, const Node& node, const Tensor& x) {
  const double eps = node.attributes.real("eps");
  if (!(eps > 0 && std::isfinite(eps))) fail("{}: eps, got {} expected a number above 0", where(graph, node), eps);
  if (is_rms(node)) return;
  if (is_layer(node)) {
    const std::string& over = node.attributes.text("over");
    if (over != "sample" && over != "channels")
      fail("{}: over, got '{}' expected sample or channels", where(graph, node), over);
    return;
  }
  const std::int64_t groups = node.attributes.integer("groups");
  if (groups < 1 || x.shape[1] % groups != 0)
    fail("{}: groups, got {} with {} channels expected a divisor of them", where(graph, node), groups, x.shape[1]);
}

Result like(const Graph& graph, const Node& node, const Tensor& x) {
  return {.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial};
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  ensure(node.inputs.size() == 1 || node.inputs.size() == 1 + weights_of(node), "a norm takes x, or its weights too");
  const Tensor& x = input(graph, node, 0);
  check_input(graph, node, x);
  check_attributes(graph, node, x);
  for (std::size_t i = 1; i < node.inputs.size(); ++i)
    ensure(input(graph, node, i).shape == affine_shape(node, x), "weight or bias of a norm has another shape");
  return {like(graph, node, x)};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  ensure(node.inputs.size() == 2 || node.inputs.size() == 3, "a norm's gradient takes 2 or 3 operands");
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape == x.shape, fmt::format("the operands of node '{}' do not fit", node.name));
  return {like(graph, node, x)};
}

std::vector<Result> infer_sums(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape == x.shape, fmt::format("the operands of node '{}' do not fit", node.name));
  const Shape shape = affine_shape(node, x);
  Shape units(shape.size(), 1);
  if (shape.size() == 1) units[0] = x.units[1];
  Result result{.shape = shape, .units = units, .dtype = graph.precision, .role = role_of(node)};
  if (is_rms(node)) return {result};
  std::vector<Result> results{result, result};
  results[0].suffix = ".bias";
  results[1].suffix = ".weight";
  return results;
}

/// The first `full` operands are like x, the others and, where `full_result` is false, the results like the weight.
Form form_with(const Graph& graph, const Node& node, std::size_t full, bool full_result) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  const bool layer = is_layer(node);
  std::string dims = dims_text(rank, true), affine = "c";
  if (layer && !over_channels(node)) affine = dims.substr(2);
  if (!layer) dims[2] = affine[0] = 'g';
  std::string text;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + (i < full ? dims : affine);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) text += (i ? ", " : " -> ") + (full_result ? dims : affine);
  const std::string split = !layer ? "b g" : over_channels(node) ? and_spatial("b", rank) : "b";
  return make_form(graph, node,
                   {.text = text, .split = split, .groups = layer ? 0 : node.attributes.integer("groups")});
}

Form form_of(const Graph& graph, const Node& node) {
  return form_with(graph, node, 1, true);
}
Form form_grad(const Graph& graph, const Node& node) {
  return form_with(graph, node, 2, true);
}
Form form_sums(const Graph& graph, const Node& node) {
  return form_with(graph, node, 2, false);
}

void gradient(Backward& backward, const Node& node) {
  const TensorId dy = backward.gradient_of(node.outputs[0]), x = node.inputs[0];
  std::vector<TensorId> operands{dy, x};
  if (node.inputs.size() > 1) {
    operands.push_back(node.inputs[1]);
    if (backward.wanted(node.inputs[1]) || backward.wanted(node.inputs.back())) {
      const std::vector<TensorId> sums = backward.append(node, {.name = node.name + ".sums",
                                                                .op = node.op + "_sums",
                                                                .attributes = node.attributes,
                                                                .inputs = {dy, x},
                                                                .twin = backward.id_of(node)});
      backward.contribute(node.inputs[1], sums.back());
      if (!is_rms(node)) backward.contribute(node.inputs[2], sums[0]);
    }
  }
  backward.contribute(
      node, x,
      {.op = node.op + "_grad", .attributes = node.attributes, .inputs = operands, .twin = backward.id_of(node)});
}

/// Operations per element of x.
template<int count>
double per_element(const Graph& graph, const Node& node) {
  return count * static_cast<double>(volume(input(graph, node, 0).shape));
}

} // namespace

std::vector<Operator> group_norm_family() {
  return {{"group_norm", infer, form_of, gradient, per_element<7>, {0}},
          {"group_norm_grad", infer_grad, form_grad, nullptr, per_element<14>, {0}},
          {"group_norm_sums", infer_sums, form_sums, nullptr, per_element<8>, {}, true},
          {"layer_norm", infer, form_of, gradient, per_element<7>, {0}},
          {"layer_norm_grad", infer_grad, form_grad, nullptr, per_element<14>, {0}},
          {"layer_norm_sums", infer_sums, form_sums, nullptr, per_element<8>, {}, true},
          {"rms_norm", infer, form_of, gradient, per_element<5>, {0}},
          {"rms_norm_grad", infer_grad, form_grad, nullptr, per_element<10>, {0}},
          {"rms_norm_sums", infer_sums, form_sums, nullptr, per_element<6>, {}, true}};
}

} // namespace soybean::ops
