// Batch normalisation as torch.nn.BatchNorm2d and BatchNorm1d, in nodes of their own whose sums are ordinary partial
// tensors, so that every tiling gives the statistics of the whole batch: the mean; the variance about it (never
// E[x²] − mean²); y = (x − mean)/√(variance + eps)·weight + bias. Backward takes two sums, which are the gradients of
// bias and weight. In validation the running statistics are read in place of mean and variance.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

#include <cmath>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Phase;
using graph::Tensor;
using graph::TensorId;

/// Values per channel.
std::int64_t values_per_channel(const Tensor& x) {
  return volume(x.shape) / x.shape[1];
}

void expect_image_or_vector(const Graph& graph, const Node& node) {
  const Tensor& x = input(graph, node, 0);
  if (x.shape.size() != 2 && x.shape.size() != 4)
    fail("{}: input, got {} dims ({}) expected 2 or 4", where(graph, node), x.shape.size(), to_string(x.shape));
  if (x.shape.size() == 2 && x.spatial != 1)
    fail("{}: input, got a flattened image expected an image or a plain vector. put it before the flatten layer",
         where(graph, node));
}

void expect_statistics(const Graph& graph, const Node& node, const Tensor& x, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i)
    ensure(input(graph, node, i).shape == Shape{x.shape[1]},
           fmt::format("operand {} of node '{}' is not one value per channel", i, node.name));
}

Result statistic(const Graph& graph, const Node& node, const Tensor& x, std::string suffix = "") {
  return {.suffix = std::move(suffix),
          .shape = {x.shape[1]},
          .units = {x.units[1]},
          .dtype = graph.precision,
          .role = role_of(node)};
}

Result like(const Graph& graph, const Node& node, const Tensor& x) {
  return {.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial};
}

std::vector<Result> infer_mean(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_image_or_vector(graph, node);
  const Tensor& x = input(graph, node, 0);
  if (values_per_channel(x) < 2)
    fail("{}: batch, got 1 value per channel ({}) expected at least 2. take a larger batch", where(graph, node),
         to_string(x.shape));
  return {statistic(graph, node, x)};
}

std::vector<Result> infer_variance(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  expect_statistics(graph, node, input(graph, node, 0), 1, 2);
  return {statistic(graph, node, input(graph, node, 0))};
}

bool has_affine(const Node& node) {
  return node.inputs.size() == 5;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  ensure(node.inputs.size() == 3 || node.inputs.size() == 5, "batch_norm takes 3 or 5 operands");
  expect_image_or_vector(graph, node);
  const Tensor& x = input(graph, node, 0);
  expect_statistics(graph, node, x, 1, node.inputs.size());
  const double eps = node.attributes.real("eps"), momentum = node.attributes.real("momentum");
  if (!(eps > 0 && std::isfinite(eps))) fail("{}: eps, got {} expected a number above 0", where(graph, node), eps);
  if (!(momentum >= 0 && momentum <= 1))
    fail("{}: momentum, got {} expected at least 0 and at most 1", where(graph, node), momentum);
  return {like(graph, node, x)};
}

std::vector<Result> infer_sums(const Graph& graph, const Node& node) {
  expect_inputs(node, 4);
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape == x.shape, fmt::format("the operands of node '{}' do not fit", node.name));
  expect_statistics(graph, node, x, 2, 4);
  return {statistic(graph, node, dy, ".bias"), statistic(graph, node, dy, ".weight")};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  ensure(node.inputs.size() == 6 || node.inputs.size() == 7, "batch_norm_grad takes 6 or 7 operands");
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape == x.shape, fmt::format("the operands of node '{}' do not fit", node.name));
  expect_statistics(graph, node, x, 2, node.inputs.size());
  return {like(graph, node, x)};
}

/// `full` operands like x, then one value per channel each; results likewise.
Form channel_form(const Graph& graph, const Node& node, std::size_t full, bool full_result) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  const std::string dims = dims_text(rank, true);
  std::string text;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) text += (i ? ", " : "") + (i < full ? dims : "c");
  for (std::size_t i = 0; i < node.outputs.size(); ++i) text += (i ? ", " : " -> ") + (full_result ? dims : "c");
  return make_form(graph, node, {.text = text, .split = and_spatial("b c", rank)});
}

Form form_statistic(const Graph& graph, const Node& node) {
  return channel_form(graph, node, 1, false);
}
Form form_of(const Graph& graph, const Node& node) {
  return channel_form(graph, node, 1, true);
}
Form form_sums(const Graph& graph, const Node& node) {
  return channel_form(graph, node, 2, false);
}
Form form_grad(const Graph& graph, const Node& node) {
  return channel_form(graph, node, 2, true);
}

/// Mean and variance are functions of x, too: batch_norm's gradient by x takes that into account.
void no_gradient(Backward&, const Node&) {}

/// The node that makes the mean. All others run where it does: x is read there.
graph::NodeId leader(const Graph& graph, const Node& node) {
  return graph.tensors[node.inputs[1]].producer;
}

void gradient(Backward& backward, const Node& node) {
  const TensorId dy = backward.gradient_of(node.outputs[0]), x = node.inputs[0];
  const graph::NodeId twin = leader(backward.graph(), node);
  const graph::Attributes attributes{{"eps", node.attributes.real("eps")}};
  const std::vector<TensorId> sums = backward.append(node, {.name = node.name + ".sums",
                                                            .op = "batch_norm_sums",
                                                            .attributes = attributes,
                                                            .inputs = {dy, x, node.inputs[1], node.inputs[2]},
                                                            .twin = twin});
  std::vector<TensorId> operands{dy, x, node.inputs[1], node.inputs[2], sums[0], sums[1]};
  if (has_affine(node)) {
    backward.contribute(node.inputs[3], sums[1]);
    backward.contribute(node.inputs[4], sums[0]);
    operands.push_back(node.inputs[3]);
  }
  backward.contribute(node, x, {.op = "batch_norm_grad", .attributes = attributes, .inputs = operands, .twin = twin});
}

/// running ← (1 − momentum)·running + momentum·value, for the variance of the unbiased one: n/(n − 1) times as much.
void update_statistics(Graph& graph, const Node& node) {
  const auto count = static_cast<double>(values_per_channel(input(graph, node, 0)));
  for (std::size_t i = 1; i <= 2; ++i) {
    const TensorId value = node.inputs[i], running = graph.tensors[value].in_evaluation;
    ensure(running != graph::none, fmt::format("node '{}' has no running statistics", node.name));
    const auto next = append(graph, {.name = graph.tensors[running].name,
                                     .op = "running_average",
                                     .attributes = {{"momentum", node.attributes.real("momentum")},
                                                    {"factor", i == 1 ? 1.0 : count / (count - 1)}},
                                     .inputs = {running, value},
                                     .phase = Phase::update,
                                     .layer = node.layer});
    link_next(graph, running, next[0]);
  }
}

std::vector<Result> infer_average(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &running = input(graph, node, 0), &value = input(graph, node, 1);
  ensure(running.role == graph::Role::state && running.shape == value.shape && running.shape.size() == 1 &&
             running.units == value.units,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.suffix = ".next",
           .shape = running.shape,
           .units = running.units,
           .dtype = graph.precision,
           .role = graph::Role::state}};
}

Form form_average(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "c, c -> c", .split = "c", .replicable = true});
}

/// Operations per element of x.
template<int count>
double per_element(const Graph& graph, const Node& node) {
  return count * static_cast<double>(volume(input(graph, node, 0).shape));
}

} // namespace

std::vector<Operator> batch_norm_family() {
  return {{"channel_mean", infer_mean, form_statistic, no_gradient, per_element<1>, {}, true},
          {"channel_variance", infer_variance, form_statistic, no_gradient, per_element<3>, {}, true},
          {"batch_norm", infer, form_of, gradient, per_element<3>, {0}, false, update_statistics},
          {"batch_norm_sums", infer_sums, form_sums, nullptr, per_element<5>, {}, true},
          {"batch_norm_grad", infer_grad, form_grad, nullptr, per_element<5>, {0}},
          {"running_average", infer_average, form_average, nullptr, per_element<3>, {0}}};
}

} // namespace soybean::ops
