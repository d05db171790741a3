// Matrix product y = x·weightᵀ, its gradients by input and by weight. Weights are [out][in], as torch.nn.Linear. Of
// sequences every position is a row of its own.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Tensor;

/// How columns of a weight lie: as the features of a flattened image; those of sequences are in plain order.
std::int64_t column_spatial(const Tensor& x) {
  return x.shape.size() == 2 ? x.spatial : 1;
}

/// Rows of the product.
std::int64_t rows_of(const Tensor& x) {
  return volume(x.shape) / x.shape[1];
}

/// x with dim `dim` of the weight in place of its features.
Result with_features(const Graph& graph, const Node& node, const Tensor& x, const Tensor& weight, std::size_t dim) {
  Result result{.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node)};
  result.shape[1] = weight.shape[dim];
  result.units[1] = weight.units[dim];
  result.spatial = x.shape.size() == 4 ? x.spatial : dim == 0 ? 1 : weight.spatial;
  return result;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &x = input(graph, node, 0), &weight = input(graph, node, 1);
  if (!is_sequence(x.shape)) expect_rank(graph, node, 0, 2, "put a flatten layer before it");
  ensure(weight.shape.size() == 2, "the weight of a dense layer has 2 dims");
  if (weight.shape[1] != x.shape[1])
    fail("{}: weight, got {} columns expected {}, one per input feature", where(graph, node), weight.shape[1],
         x.shape[1]);
  ensure(weight.units[1] == x.units[1] && weight.spatial == column_spatial(x),
         fmt::format("the units or spatial size of weight '{}' do not fit its input", weight.name));
  return {with_features(graph, node, x, weight, 0)};
}

std::vector<Result> infer_grad_input(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &weight = input(graph, node, 1);
  ensure(weight.shape.size() == 2 && dy.shape[1] == weight.shape[0] && column_spatial(dy) == 1,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {with_features(graph, node, dy, weight, 1)};
}

std::vector<Result> infer_grad_weight(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  const Tensor &dy = input(graph, node, 0), &x = input(graph, node, 1);
  ensure(dy.shape.size() == x.shape.size() && rows_of(dy) == rows_of(x) && column_spatial(dy) == 1,
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {dy.shape[1], x.shape[1]},
           .units = {dy.units[1], x.units[1]},
           .dtype = graph.precision,
           .role = role_of(node),
           .spatial = column_spatial(x)}};
}

/// The form of rank-2 operands, with " h ." behind those of samples where they are sequences.
Form form_of(const Graph& graph, const Node& node, std::string_view text) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  std::string full;
  for (std::size_t i = 0; i < text.size(); ++i) {
    full += text[i];
    if (rank == 4 && i >= 2 && text[i - 2] == 'b') full += " h .";
  }
  return make_form(graph, node, {.text = full, .split = rank == 4 ? "b n k h" : "b n k"});
}

Form form_forward(const Graph& graph, const Node& node) {
  return form_of(graph, node, "b k, n k -> b n");
}

Form form_grad_input(const Graph& graph, const Node& node) {
  return form_of(graph, node, "b n, n k -> b k");
}

Form form_grad_weight(const Graph& graph, const Node& node) {
  return form_of(graph, node, "b n, b k -> n k");
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId dy = backward.gradient_of(node.outputs[0]), x = node.inputs[0], weight = node.inputs[1];
  backward.contribute(node, x, {.op = "dense_grad_input", .inputs = {dy, weight}});
  backward.contribute(node, weight, {.op = "dense_grad_weight", .inputs = {dy, x}});
}

double flops_forward(const Graph& graph, const Node& node) {
  return 2.0 * result_elements(graph, node) * static_cast<double>(input(graph, node, 0).shape[1]);
}

double flops_grad_input(const Graph& graph, const Node& node) {
  return 2.0 * result_elements(graph, node) * static_cast<double>(input(graph, node, 0).shape[1]);
}

double flops_grad_weight(const Graph& graph, const Node& node) {
  return 2.0 * result_elements(graph, node) * static_cast<double>(rows_of(input(graph, node, 0)));
}

} // namespace

std::vector<Operator> dense_family() {
  return {{"dense", infer, form_forward, gradient, flops_forward},
          {"dense_grad_input", infer_grad_input, form_grad_input, nullptr, flops_grad_input},
          {"dense_grad_weight", infer_grad_weight, form_grad_weight, nullptr, flops_grad_weight, {}, true}};
}

} // namespace soybean::ops
