// One step of stochastic gradient descent for one parameter, as torch.optim.SGD (formulas in autodiff.hpp).
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"
#include "ops/updates.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

bool has_momentum(const Node& node) {
  return node.attributes.real("momentum") != 0;
}

UpdateOperands operands_of(const Node& node) {
  UpdateOperands operands;
  if (has_momentum(node)) operands.states = {"momentum"};
  return operands;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  ensure(node.attributes.has("weight_decay") && node.attributes.has("nesterov"), "sgd_update lacks attributes");
  return update_results(graph, node, operands_of(node));
}

Form form_of(const Graph& graph, const Node& node) {
  return update_form(graph, node, operands_of(node));
}

/// A multiply-add for each of lr, weight decay, momentum and Nesterov's look ahead.
double flops_of(const Graph& graph, const Node& node) {
  const double terms = 1.0 + (node.attributes.real("weight_decay") != 0) + has_momentum(node) +
                       (node.attributes.integer("nesterov") != 0);
  return update_flops(graph, node, 2 * terms);
}

} // namespace

std::vector<Operator> sgd_family() {
  return {{"sgd_update", infer, form_of, nullptr, flops_of, states_in_place()}};
}

} // namespace soybean::ops
