// Activations y = f(x). The gradient is a function of y where y tells it (relu, relu6, leaky_relu, elu, tanh, sigmoid),
// else of x; either way it runs where the forward node does.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <cmath>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

/// At least 0: the result has the operand's sign, and the gradient can be told from it.
void expect_factor(const Graph& graph, const Node& node, std::string_view name) {
  const double value = node.attributes.real(name);
  if (!(value >= 0 && std::isfinite(value)))
    fail("{}: {}, got {} expected a finite number of at least 0", where(graph, node), name, value);
}

std::vector<Result> infer_leaky_relu(const Graph& graph, const Node& node) {
  expect_factor(graph, node, "slope");
  return infer_unary(graph, node);
}

std::vector<Result> infer_elu(const Graph& graph, const Node& node) {
  expect_factor(graph, node, "alpha");
  return infer_unary(graph, node);
}

std::vector<Result> infer_gelu(const Graph& graph, const Node& node) {
  const std::string& kind = node.attributes.text("approximate");
  if (kind != "none" && kind != "tanh")
    fail("{}: approximate, got '{}' expected none or tanh", where(graph, node), kind);
  return infer_unary(graph, node);
}

Form form_of(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, false);
}

void contribute(Backward& backward, const Node& node, graph::TensorId known) {
  backward.contribute(node, node.inputs[0],
                      {.op = node.op + "_grad",
                       .attributes = node.attributes,
                       .inputs = {backward.gradient_of(node.outputs[0]), known},
                       .twin = backward.id_of(node)});
}

void gradient_by_result(Backward& backward, const Node& node) {
  contribute(backward, node, node.outputs[0]);
}

void gradient_by_operand(Backward& backward, const Node& node) {
  contribute(backward, node, node.inputs[0]);
}

/// Operations per element, those of a power of two or division counted as one, an exponential as four.
template<int count>
double per_element(const Graph& graph, const Node& node) {
  return count * result_elements(graph, node);
}

} // namespace

std::vector<Operator> pointwise_family() {
  return {{"relu", infer_unary, form_of, gradient_by_result, per_element<1>, {0}},
          {"relu_grad", infer_binary, form_of, nullptr, per_element<1>, {0}},
          {"relu6", infer_unary, form_of, gradient_by_result, per_element<2>, {0}},
          {"relu6_grad", infer_binary, form_of, nullptr, per_element<2>, {0}},
          {"tanh", infer_unary, form_of, gradient_by_result, per_element<4>, {0}},
          {"tanh_grad", infer_binary, form_of, nullptr, per_element<2>, {0}},
          {"sigmoid", infer_unary, form_of, gradient_by_result, per_element<4>, {0}},
          {"sigmoid_grad", infer_binary, form_of, nullptr, per_element<2>, {0}},
          {"leaky_relu", infer_leaky_relu, form_of, gradient_by_result, per_element<1>, {0}},
          {"leaky_relu_grad", infer_binary, form_of, nullptr, per_element<1>, {0}},
          {"elu", infer_elu, form_of, gradient_by_result, per_element<5>, {0}},
          {"elu_grad", infer_binary, form_of, nullptr, per_element<2>, {0}},
          {"gelu", infer_gelu, form_of, gradient_by_operand, per_element<8>, {0}},
          {"gelu_grad", infer_binary, form_of, nullptr, per_element<16>, {0}},
          {"silu", infer_unary, form_of, gradient_by_operand, per_element<6>, {0}},
          {"silu_grad", infer_binary, form_of, nullptr, per_element<9>, {0}},
          {"hard_swish", infer_unary, form_of, gradient_by_operand, per_element<5>, {0}},
          {"hard_swish_grad", infer_binary, form_of, nullptr, per_element<3>, {0}}};
}

} // namespace soybean::ops
