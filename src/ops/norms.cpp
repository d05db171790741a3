// Norms of whole tensors, for clipping and for rates layer by layer: Σx² of one tensor or of several of one shape (each
// rank sums what it has: the result is partial on every cut), the sum of such sums, and the factor of
// torch.nn.utils.clip_grad_norm_. All control traffic, in f64.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::Role;

bool is_control_scalar(const graph::Tensor& tensor) {
  return tensor.role == Role::control && tensor.shape.empty();
}

/// A scalar for one operand, a vector of one entry each for several.
std::vector<Result> infer_squares(const Graph& graph, const Node& node) {
  ensure(!node.inputs.empty(), "sum_of_squares of nothing");
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    ensure(!input(graph, node, i).shape.empty() && input(graph, node, i).shape == input(graph, node, 0).shape,
           fmt::format("the operands of node '{}' do not fit", node.name));
  const auto count = static_cast<std::int64_t>(node.inputs.size());
  return {{.shape = count == 1 ? Shape{} : Shape{count}, .dtype = DType::f64, .role = Role::control}};
}

Form form_squares(const Graph& graph, const Node& node) {
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), false);
  std::string text = dims;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) text += ", " + dims;
  return make_form(graph, node,
                   {.text = text + (node.inputs.size() == 1 ? " -> 1" : " -> ."), .split = "d0 d1", .may_idle = true});
}

double flops_squares(const Graph& graph, const Node& node) {
  return 2.0 * static_cast<double>(node.inputs.size()) * static_cast<double>(volume(input(graph, node, 0).shape));
}

std::vector<Result> infer_sums(const Graph& graph, const Node& node) {
  ensure(!node.inputs.empty(), "sum_of_sums of nothing");
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    ensure(is_control_scalar(input(graph, node, i)), fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.shape = {}, .dtype = DType::f64, .role = Role::control}};
}

/// Adds up terms of sums as they are, so that one reduction does for all.
Form form_sums(const Graph& graph, const Node& node) {
  std::string text = "1";
  for (std::size_t i = 1; i < node.inputs.size(); ++i) text += ", 1";
  return make_form(graph, node, {.text = text + " -> 1", .linear = true});
}

double flops_sums(const Graph&, const Node& node) {
  return static_cast<double>(node.inputs.size() - 1);
}

std::vector<Result> infer_factor(const Graph& graph, const Node& node) {
  expect_inputs(node, 1);
  ensure(is_control_scalar(input(graph, node, 0)) && node.attributes.has("most"),
         fmt::format("the operands of node '{}' do not fit", node.name));
  return {{.suffix = "", .shape = {}, .dtype = graph.precision, .role = Role::metric},
          {.suffix = ".factor", .shape = {}, .dtype = DType::f64, .role = Role::control}};
}

Form form_factor(const Graph& graph, const Node& node) {
  return make_form(graph, node, {.text = "1 -> 1, 1", .replicable = true});
}

double flops_factor(const Graph&, const Node&) {
  return 3;
}

} // namespace

std::vector<Operator> norms_family() {
  return {{"sum_of_squares", infer_squares, form_squares, nullptr, flops_squares},
          {"sum_of_sums", infer_sums, form_sums, nullptr, flops_sums},
          {"clip_factor", infer_factor, form_factor, nullptr, flops_factor}};
}

} // namespace soybean::ops
