// Softmax cross-entropy in steps that let the classes be split: each part of them has its maximum and sum of
// exponentials, the label's logit is a sum over classes of which all but one term are zero, and the loss puts the few
// numbers of a row together. What the ranks tell each other is those, never the logits.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"
#include "ops/losses.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

void expect_logits(const Graph& graph, const Node& node) {
  const Tensor& x = input(graph, node, 0);
  ensure(is_sequence(x.shape) || (x.shape.size() == 2 && x.spatial == 1),
         fmt::format("node '{}' needs plain logits", node.name));
}

/// The form of rank-2 operands as `text` says, of sequences with the position: "b k" becomes "b k h .", "b" "b h", and
/// "w", an operand of one number per sample, stays "b".
Form form_of_rows(const Graph& graph, const Node& node, std::string_view text, const std::string& split,
                  bool replicable = false) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  std::string full;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool last = i + 1 == text.size() || text[i + 1] == ',' || text.substr(i + 1).starts_with(" ->");
    full += text[i] == 'w' ? 'b' : text[i];
    if (rank == 4 && last && text[i] == 'b') full += " h";
    if (rank == 4 && last && (text[i] == 'k' || text[i] == '.')) full += " h .";
  }
  return make_form(graph, node, {.text = full, .split = split + (rank == 4 ? " h" : ""), .replicable = replicable});
}

Result row_result(const Graph& graph, const Node& node, std::string suffix) {
  const Tensor& x = input(graph, node, 0);
  return {.suffix = std::move(suffix),
          .shape = label_shape(x.shape),
          .units = is_sequence(x.shape) ? Shape{x.units[0], x.units[2]} : Shape{x.units[0]},
          .dtype = graph.precision,
          .role = role_of(node)};
}

/// Attribute parts, a divisor of the number of classes.
std::vector<Result> infer_parts(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  expect_logits(graph, node);
  const Tensor& x = input(graph, node, 0);
  const std::int64_t parts = node.attributes.integer("parts");
  ensure(parts >= 1 && x.shape[1] % parts == 0, fmt::format("node '{}' can not cut its classes", node.name));
  std::vector<Result> results;
  for (const char* suffix : {".max", ".sum", ".first"}) {
    Result result{.suffix = suffix, .shape = x.shape, .units = x.units, .dtype = graph.precision};
    result.shape[1] = parts;
    result.units[1] = 1;
    result.spatial = x.spatial;
    result.role = role_of(node);
    results.push_back(result);
  }
  return results;
}

Form form_parts(const Graph& graph, const Node& node) {
  return form_of_rows(graph, node, "b k -> b k, b k, b k", "b k");
}

/// The label's logit; with attribute mean (1) the mean of all as well.
std::vector<Result> infer_target(const Graph& graph, const Node& node) {
  expect_inputs(node, 2);
  expect_logits(graph, node);
  std::vector<Result> results{row_result(graph, node, "")};
  if (node.attributes.integer("mean") == 1) results.push_back(row_result(graph, node, ".mean"));
  return results;
}

Form form_target(const Graph& graph, const Node& node) {
  return form_of_rows(graph, node, node.outputs.size() == 2 ? "b k, b -> b, b" : "b k, b -> b", "b k");
}

/// How many classes come before the label: operands logits, the label's logit, labels.
std::vector<Result> infer_rank(const Graph& graph, const Node& node) {
  expect_inputs(node, 3);
  expect_logits(graph, node);
  return {row_result(graph, node, "")};
}

Form form_rank(const Graph& graph, const Node& node) {
  return form_of_rows(graph, node, "b k, b, b -> b", "b k");
}

/// Operands: max, sum and first of the parts, the label's logit, labels, weights; the mean where there is
/// label_smoothing, the rank where there is top_k; of mixed samples the partner's logit, partners' labels, shares.
std::vector<Result> infer_loss(const Graph& graph, const Node& node) {
  const bool top = node.attributes.has("top_k");
  if (node.inputs.size() != plain_operands(node) + 3) expect_inputs(node, plain_operands(node));
  std::vector<Result> results{{.suffix = "", .shape = {}, .dtype = graph.precision, .role = Role::metric},
                              {.suffix = ".correct", .shape = {}, .dtype = graph.precision, .role = Role::metric},
                              row_result(graph, node, ".logsumexp")};
  if (top)
    results.push_back({.suffix = fmt::format(".top{}", node.attributes.integer("top_k")),
                       .shape = {},
                       .dtype = graph.precision,
                       .role = Role::metric});
  return results;
}

Form form_loss(const Graph& graph, const Node& node) {
  std::string text = "b ., b ., b ., b, b, w";
  for (std::size_t i = 6; i < node.inputs.size(); ++i) text += ", b";
  text += node.outputs.size() == 4 ? " -> 1, 1, b, 1" : " -> 1, 1, b";
  return form_of_rows(graph, node, text, "b", true);
}

/// Operands: logits, their logsumexp, labels, weights; of mixed samples partners' labels and shares.
std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 6) expect_inputs(node, 4);
  expect_logits(graph, node);
  const Tensor& x = input(graph, node, 0);
  return {{.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial}};
}

Form form_grad(const Graph& graph, const Node& node) {
  return form_of_rows(graph, node, node.inputs.size() == 6 ? "b k, b, b, w, b, b -> b k" : "b k, b, b, w -> b k", "b k",
                      true);
}

void gradient(Backward& backward, const Node& node) {
  const Graph& graph = backward.graph();
  const TensorId logits = graph.nodes[graph.tensors[node.inputs[0]].producer].inputs[0];
  graph::Attributes attributes;
  for (const char* name : {"label_smoothing", "factor"})
    if (node.attributes.has(name)) attributes.set(name, node.attributes.real(name));
  std::vector<TensorId> inputs{logits, node.outputs[2], node.inputs[4], node.inputs[5]};
  if (const std::size_t plain = plain_operands(node); node.inputs.size() > plain)
    inputs.insert(inputs.end(), {node.inputs[plain + 1], node.inputs[plain + 2]});
  backward.contribute(node, logits,
                      {.op = "split_softmax_loss_grad", .attributes = attributes, .inputs = std::move(inputs)});
}

void no_gradient(Backward&, const Node&) {} // the loss does it all

/// A few operations per element of the first operand.
template<int per_element>
double flops_of(const Graph& graph, const Node& node) {
  return per_element * static_cast<double>(volume(input(graph, node, 0).shape));
}

} // namespace

std::size_t plain_operands(const Node& node) {
  return std::size_t{6} + (node.attributes.has("label_smoothing") ? 1 : 0) + (node.attributes.has("top_k") ? 1 : 0);
}

std::vector<Operator> split_softmax_family() {
  return {{"softmax_parts", infer_parts, form_parts, no_gradient, flops_of<4>},
          {"label_logit", infer_target, form_target, no_gradient, flops_of<1>},
          {"label_rank", infer_rank, form_rank, no_gradient, flops_of<2>},
          {"split_softmax_loss", infer_loss, form_loss, gradient, flops_of<4>},
          {"split_softmax_loss_grad", infer_grad, form_grad, nullptr, flops_of<4>}};
}

} // namespace soybean::ops
