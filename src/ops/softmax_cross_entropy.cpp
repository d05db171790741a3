// The loss Σ weightᵢ·(logΣexp(xᵢ) − xᵢ[labelᵢ]) and the number of correct rows; with weights of 1/batch it is
// torch.nn.CrossEntropyLoss. With label_smoothing ε the label's share is 1 − ε + ε/K and every other class's ε/K. Rows
// (classes) are never split; the sums over samples are partial. Of mixed samples there are two more operands, the
// partners' labels and the shares of the samples themselves, and xᵢ[labelᵢ] is shareᵢ·xᵢ[labelᵢ] +
// (1 − shareᵢ)·xᵢ[partnerᵢ]. Of a sequence every position is such a row, with an equal part of its sample's weight.
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
  if (node.inputs.size() != 5) expect_inputs(node, 3);
  const bool sequence = is_sequence(input(graph, node, 0).shape);
  if (!sequence) expect_rank(graph, node, 0, 2, "put a flatten or dense layer before the loss");
  const Shape rows{input(graph, node, 0).shape[0]};
  const Tensor &labels = input(graph, node, 1), &weights = input(graph, node, 2);
  if (const Shape wanted = label_shape(input(graph, node, 0).shape); labels.shape != wanted)
    fail("{}: labels, got shape {} expected {}, one per {}", where(graph, node), to_string(labels.shape),
         to_string(wanted), sequence ? "position" : "sample");
  if (weights.shape != rows)
    fail("{}: sample weights, got shape {} expected {}, one per sample", where(graph, node), to_string(weights.shape),
         rows[0]);
  ensure(labels.dtype == DType::i32 && weights.dtype == graph.precision,
         fmt::format("the labels or weights of node '{}' have the wrong type", node.name));
  if (node.inputs.size() == 3) return;
  ensure(!sequence, fmt::format("node '{}' has mixed sequences", node.name));
  const Tensor &partners = input(graph, node, 3), &shares = input(graph, node, 4);
  ensure(partners.shape == rows && shares.shape == rows && partners.dtype == DType::i32 &&
             shares.dtype == graph.precision,
         fmt::format("the partners or shares of node '{}' have the wrong shape or type", node.name));
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  check_operands(graph, node);
  std::vector<Result> results{{.suffix = "", .shape = {}, .dtype = graph.precision, .role = Role::metric},
                              {.suffix = ".correct", .shape = {}, .dtype = graph.precision, .role = Role::metric}};
  if (node.attributes.has("label_smoothing")) {
    const double share = node.attributes.real("label_smoothing");
    if (!(share >= 0 && share <= 1))
      fail("{}: label_smoothing, got {} expected between 0 and 1", where(graph, node), share);
  }
  if (node.attributes.has("top_k")) {
    const std::int64_t k = node.attributes.integer("top_k"), classes = input(graph, node, 0).shape[1];
    if (k < 2 || k > classes)
      fail("{}: top_k, got {} expected between 2 and {}, the number of classes", where(graph, node), k, classes);
    results.push_back(
        {.suffix = fmt::format(".top{}", k), .shape = {}, .dtype = graph.precision, .role = Role::metric});
  }
  return results;
}

std::vector<Result> infer_grad(const Graph& graph, const Node& node) {
  check_operands(graph, node);
  const Tensor& x = input(graph, node, 0);
  return {{.shape = x.shape, .units = x.units, .dtype = graph.precision, .role = role_of(node), .spatial = x.spatial}};
}

std::string operands_text(const Graph& graph, const Node& node) {
  if (is_sequence(input(graph, node, 0).shape)) return "b k h ., b h, b -> ";
  return node.inputs.size() == 5 ? "b k, b, b, b, b -> " : "b k, b, b -> ";
}

/// Of sequences positions are split, too.
std::string split_of(const Graph& graph, const Node& node) {
  return is_sequence(input(graph, node, 0).shape) ? "b h" : "b";
}

Form form_forward(const Graph& graph, const Node& node) {
  const std::string results = node.outputs.size() == 3 ? "1, 1, 1" : "1, 1";
  return make_form(graph, node,
                   {.text = operands_text(graph, node) + results, .split = split_of(graph, node), .replicable = true});
}

Form form_grad(const Graph& graph, const Node& node) {
  const std::string result = is_sequence(input(graph, node, 0).shape) ? "b k h ." : "b k";
  return make_form(graph, node,
                   {.text = operands_text(graph, node) + result, .split = split_of(graph, node), .replicable = true});
}

void gradient(Backward& backward, const Node& node) {
  graph::Attributes attributes;
  for (const char* name : {"label_smoothing", "factor"})
    if (node.attributes.has(name)) attributes.set(name, node.attributes.real(name));
  backward.contribute(node, node.inputs[0],
                      {.op = "softmax_cross_entropy_grad", .attributes = attributes, .inputs = node.inputs});
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
