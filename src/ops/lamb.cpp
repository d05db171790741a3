// One step of LAMB for one parameter (You et al., "Large batch optimization for deep learning", arXiv 1904.00962,
// algorithm 2; formulas in autodiff.hpp), in two nodes: the direction, whose norm is then summed up over the whole
// tensor, and the step along it.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"
#include "ops/updates.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

UpdateOperands direction_operands() {
  return {.states = {"exp_avg", "exp_avg_sq"}, .direction = true};
}

std::vector<Result> infer_direction(const Graph& graph, const Node& node) {
  for (const char* name : {"beta1", "beta2", "eps", "weight_decay"})
    ensure(node.attributes.has(name), "lamb_direction lacks attributes");
  return update_results(graph, node, direction_operands());
}

Form form_direction(const Graph& graph, const Node& node) {
  return update_form(graph, node, direction_operands());
}

double flops_direction(const Graph& graph, const Node& node) {
  return update_flops(graph, node, 12.0 + 2 * (node.attributes.real("weight_decay") != 0));
}

UpdateOperands update_operands(const Node& node) {
  return {.norms = node.attributes.integer("adapted") != 0};
}

std::vector<Result> infer_update(const Graph& graph, const Node& node) {
  return update_results(graph, node, update_operands(node));
}

Form form_update(const Graph& graph, const Node& node) {
  return update_form(graph, node, update_operands(node));
}

double flops_step(const Graph& graph, const Node& node) {
  return update_flops(graph, node, 2);
}

} // namespace

std::vector<Operator> lamb_family() {
  return {{"lamb_direction", infer_direction, form_direction, nullptr, flops_direction, {1, 3, 4}},
          {"lamb_update", infer_update, form_update, nullptr, flops_step, states_in_place()}};
}

} // namespace soybean::ops
