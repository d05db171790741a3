// Softmax and its logarithm over channels (of every position of an image) or features, as torch.softmax(x, 1). The
// normalised index is never split.
#include "ops/common.hpp"
#include "ops/families.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

Form form_of(const Graph& graph, const Node& node) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  const std::string dims = dims_text(rank, true);
  return make_form(graph, node, {.text = dims + " -> " + dims, .split = and_spatial("b", rank)});
}

Form form_grad(const Graph& graph, const Node& node) {
  const std::size_t rank = input(graph, node, 0).shape.size();
  const std::string dims = dims_text(rank, true);
  return make_form(graph, node, {.text = dims + ", " + dims + " -> " + dims, .split = and_spatial("b", rank)});
}

void gradient(Backward& backward, const Node& node) {
  const graph::TensorId y = node.outputs[0];
  backward.contribute(node, node.inputs[0], {.op = node.op + "_grad", .inputs = {backward.gradient_of(y), y}});
}

/// Maximum, difference, exponential, sum and quotient, or product, sum and difference.
double flops_of(const Graph& graph, const Node& node) {
  return (node.inputs.size() == 1 ? 8 : 4) * result_elements(graph, node);
}

} // namespace

std::vector<Operator> softmax_family() {
  return {{"softmax", infer_unary, form_of, gradient, flops_of, {0}},
          {"softmax_grad", infer_binary, form_grad, nullptr, flops_of, {0}},
          {"log_softmax", infer_unary, form_of, gradient, flops_of, {0}},
          {"log_softmax_grad", infer_binary, form_grad, nullptr, flops_of, {0}}};
}

} // namespace soybean::ops
