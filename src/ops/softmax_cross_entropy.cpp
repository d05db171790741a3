// The loss Σ weightᵢ·(logΣexp(xᵢ) − xᵢ[labelᵢ]) and the number of correct rows; with weights of 1/batch it is
// torch.nn.CrossEntropyLoss. Rows (classes) are never split; the sums over samples are partial.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Role;
using graph::Tensor;

void check_operands(const Graph& graph, const Node& node) {
  expect_inputs(node, 3);
  expect_rank(graph, node, 0, 2, "put a flatten or dense layer before the loss");
  const Shape rows{input(graph, node, 0).shape[0]};
  const Tensor &labels = input(graph, node, 1), &weights = input(graph, node, 2);
  if (labels.shape != rows)
    fail("{}: labels, got shape {} expected {}, one per sample", where(graph, node), to_string(labels.shape), rows[0]);
  if (weights.shape != rows)
    fail("{}: sample weights, got shape {} expected {}, one per sample", where(graph, node), to_string(weights.shape),
         rows[0]);
  ensure(labels.dtype == DType::i32 && weights.dtype == graph.precision,
         fmt::format("the labels or weights of node '{}' have the wrong type", node.name));
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  check_operands(graph, node);
  return {{.suffix = "", .shape = {}, .dtype = graph.precision, .role = Role::metric},
          {.suffix = ".correct", .shape = {}, .dtype = graph.precision, .role = Role::metric}};
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  check_operands(graph, node);
  const Tensor& x = input(graph, node, 0);
  return {{.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial}};
}

Form form_forward(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b k, b, b -> 1, 1", .split = "b", .replicable = true});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "b k, b, b -> b k", .split = "b", .replicable = true});
}

void gradient(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0], {.op = "softmax_cross_entropy_grad", .inputs = node.inputs});
}

/// Maximum, difference, exponential, sum (and quotient): about five per logit.
double flops_of(const Graph& graph, const Node& node) {
  return 5.0 * static_cast<double>(volume(input(graph, node, 0).shape));
}

} // namespace

std::vector<Operator> softmax_cross_entropy_family() {
  return {{"softmax_cross_entropy", infer, form_forward, gradient, flops_of},
          {"softmax_cross_entropy_grad", infer_grad, form_grad, nullptr, flops_of}};
}

} // namespace soybean::ops
