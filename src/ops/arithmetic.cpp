// Functions of one operand with constants: scale, shift, powers, roots, exponentials, logarithms, absolute values,
// clamps, as the functions of torch named alike.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <cmath>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::TensorId;

/// With one constant, which must be finite.
template<const char* name>
std::vector<Result> infer_with(const Graph& graph, const Node& node) {
  const double value = node.attributes.real(name);
  if (!std::isfinite(value)) fail("{}: {}, got {} expected a finite number", where(graph, node), name, value);
  return infer_unary(graph, node);
}
constexpr char factor[] = "factor", by[] = "by", exponent[] = "exponent";

std::vector<Result> infer_clamp(const Graph& graph, const Node& node) {
  const double low = node.attributes.real("min"), high = node.attributes.real("max");
  if (!(low <= high)) fail("{}: min, got {} expected at most max, which is {}", where(graph, node), low, high);
  return infer_unary(graph, node);
}

Form form_of(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, false);
}
Form form_linear(const Graph& graph, const Node& node) {
  return elementwise_form(graph, node, true);
}

TensorId above(Backward& backward, const Node& node) {
  return backward.gradient_of(node.outputs[0]);
}

void gradient_scale(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0],
                      {.op = "scale", .attributes = node.attributes, .inputs = {above(backward, node)}});
}
void gradient_shift(Backward& backward, const Node& node) {
  backward.contribute(node.inputs[0], above(backward, node));
}
void gradient_exp(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0], {.op = "mul", .inputs = {above(backward, node), node.outputs[0]}});
}
void gradient_log(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0], {.op = "div", .inputs = {above(backward, node), node.inputs[0]}});
}
void gradient_by_result(Backward& backward, const Node& node) {
  backward.contribute(node, node.inputs[0],
                      {.op = node.op + "_grad", .inputs = {above(backward, node), node.outputs[0]}});
}
void gradient_by_operand(Backward& backward, const Node& node) {
  backward.contribute(
      node, node.inputs[0],
      {.op = node.op + "_grad", .attributes = node.attributes, .inputs = {above(backward, node), node.inputs[0]}});
}

/// Operations per element, a power or exponential counted as four.
template<int count>
double per_element(const Graph& graph, const Node& node) {
  return count * result_elements(graph, node);
}

} // namespace

std::vector<Operator> arithmetic_family() {
  return {{"scale", infer_with<factor>, form_linear, gradient_scale, per_element<1>, {0}},
          {"shift", infer_with<by>, form_of, gradient_shift, per_element<1>, {0}},
          {"pow", infer_with<exponent>, form_of, gradient_by_operand, per_element<4>, {0}},
          {"pow_grad", infer_binary, form_of, nullptr, per_element<6>, {0}},
          {"sqrt", infer_unary, form_of, gradient_by_result, per_element<1>, {0}},
          {"sqrt_grad", infer_binary, form_of, nullptr, per_element<2>, {0}},
          {"exp", infer_unary, form_of, gradient_exp, per_element<4>, {0}},
          {"log", infer_unary, form_of, gradient_log, per_element<4>, {0}},
          {"abs", infer_unary, form_of, gradient_by_operand, per_element<1>, {0}},
          {"abs_grad", infer_binary, form_of, nullptr, per_element<1>, {0}},
          {"clamp", infer_clamp, form_of, gradient_by_operand, per_element<2>, {0}},
          {"clamp_grad", infer_binary, form_of, nullptr, per_element<2>, {0}}};
}

} // namespace soybean::ops
