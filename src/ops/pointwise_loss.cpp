// Losses that are sums over elements, weighted by row: mse is torch.nn.MSELoss, binary_cross_entropy
// torch.nn.BCEWithLogitsLoss, with weights of 1/batch. The target is a tensor like x, or labels, which stand for
// one-hot rows, or for the value itself where a sample has one element. Every dim of x may be split.
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
  const Tensor &x = input(graph, node, 0), &target = input(graph, node, 1), &weights = input(graph, node, 2);
  if (x.shape.size() != 2 && x.shape.size() != 4)
    fail("{}: input, got {} dims ({}) expected images or features", where(graph, node), x.shape.size(),
         to_string(x.shape));
  const Shape rows{x.shape[0]};
  if (target.dtype == DType::i32) {
    if (target.shape != rows)
      fail("{}: labels, got shape {} expected {}, one per sample", where(graph, node), to_string(target.shape),
           rows[0]);
    if (x.shape.size() != 2)
      fail("{}: target, got labels for images ({}) expected features. put a flatten or dense layer before the loss",
           where(graph, node), to_string(x.shape));
  } else if (target.shape != x.shape || target.spatial != x.spatial) {
    fail("{}: target, got shape {} expected the input's {}", where(graph, node), to_string(target.shape),
         to_string(x.shape));
  }
  if (weights.shape != rows)
    fail("{}: sample weights, got shape {} expected {}, one per sample", where(graph, node), to_string(weights.shape),
         rows[0]);
  ensure(weights.dtype == graph.precision, fmt::format("the weights of node '{}' have the wrong type", node.name));
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  check_operands(graph, node);
  std::vector<Result> results{{.suffix = "", .shape = {}, .dtype = graph.precision, .role = Role::metric}};
  if (node.op == "binary_cross_entropy")
    results.push_back({.suffix = ".correct", .shape = {}, .dtype = graph.precision, .role = Role::metric});
  return results;
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  check_operands(graph, node);
  const Tensor& x = input(graph, node, 0);
  return {{.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial}};
}

std::string operands_text(const Graph& graph, const Node& node) {
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), true);
  return dims + (input(graph, node, 1).dtype == DType::i32 ? ", b, b -> " : ", " + dims + ", b -> ");
}

Form form_forward(const Graph& graph, const Node& node) {
  const std::string results = node.outputs.size() == 2 ? "1, 1" : "1";
  return make_form(graph, node, {.text = operands_text(graph, node) + results, .split = "b c", .replicable = true});
}

Form form_grad(const Graph& graph, const Node& node) {
  return make_form(graph, node,
                   {.text = operands_text(graph, node) + dims_text(input(graph, node, 0).shape.size(), true),
                    .split = "b c",
                    .replicable = true});
}

void gradient(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0],
                      {.op = node.op + "_grad", .attributes = node.attributes, .inputs = node.inputs});
  ensure(!backward.wanted(node.inputs[1]), "a loss is not differentiated by its target");
}

double flops_of(const Graph& graph, const Node& node) {
  return (node.op.starts_with("mse") ? 3.0 : 6.0) * static_cast<double>(volume(input(graph, node, 0).shape));
}

/// Σ factor_i · lossᵢ of several losses; attributes factor_0, factor_1, ….
std::vector<Result> infer_total(const Graph& graph, const Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    ensure(input(graph, node, i).shape.empty() && node.attributes.has(fmt::format("factor_{}", i)),
           fmt::format("node '{}' adds what is no loss", node.name));
  return {{.shape = {}, .dtype = graph.precision, .role = Role::metric}};
}

Form form_total(const Graph& graph, const Node& node) {
  std::string text = "1";
  for (std::size_t i = 1; i < node.inputs.size(); ++i) text += ", 1";
  return make_form(graph, node, {.text = text + " -> 1", .replicable = true});
}

void no_gradient(Backward&, const Node&) {} // the losses know their factors

double flops_total(const Graph&, const Node& node) {
  return 2.0 * static_cast<double>(node.inputs.size());
}

} // namespace

std::vector<Operator> pointwise_loss_family() {
  return {{"mse", infer, form_forward, gradient, flops_of},
          {"mse_grad", infer_grad, form_grad, nullptr, flops_of},
          {"binary_cross_entropy", infer, form_forward, gradient, flops_of},
          {"binary_cross_entropy_grad", infer_grad, form_grad, nullptr, flops_of},
          {"total_loss", infer_total, form_total, no_gradient, flops_total}};
}

} // namespace soybean::ops
