// One step of RMSprop for one parameter, as torch.optim.RMSprop (formulas in autodiff.hpp).
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"
#include "ops/updates.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

bool is_centered(const Node& node) {
  return node.attributes.integer("centered") != 0;
}

bool has_momentum(const Node& node) {
  return node.attributes.real("momentum") != 0;
}

UpdateOperands operands_of(const Node& node) {
  UpdateOperands operands{.states = {"square_avg"}};
  if (is_centered(node)) operands.states.emplace_back("grad_avg");
  if (has_momentum(node)) operands.states.emplace_back("momentum");
  return operands;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  for (const char* name : {"alpha", "eps", "weight_decay"})
    ensure(node.attributes.has(name), "rmsprop_update lacks attributes");
  return update_results(graph, node, operands_of(node));
}

Form form_of(const Graph& graph, const Node& node) {
  return update_form(graph, node, operands_of(node));
}

/// Squares 4, root, quotient and step 5; decay, mean and momentum.
double flops_of(const Graph& graph, const Node& node) {
  return update_flops(graph, node,
                      9.0 + 2 * (node.attributes.real("weight_decay") != 0) + 5 * is_centered(node) +
                          2 * has_momentum(node));
}

} // namespace

std::vector<Operator> rmsprop_family() {
  return {{"rmsprop_update", infer, form_of, nullptr, flops_of, states_in_place()}};
}

} // namespace soybean::ops
