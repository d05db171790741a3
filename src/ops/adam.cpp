// One step of Adam or AdamW for one parameter, as torch.optim.Adam and AdamW (formulas in autodiff.hpp).
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"
#include "ops/updates.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

UpdateOperands operands_of(const Node& node) {
  UpdateOperands operands{.states = {"exp_avg", "exp_avg_sq"}};
  if (node.attributes.integer("amsgrad") != 0) operands.states.emplace_back("max_exp_avg_sq");
  return operands;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  for (const char* name : {"beta1", "beta2", "eps", "weight_decay", "decoupled"})
    ensure(node.attributes.has(name), "adam_update lacks attributes");
  return update_results(graph, node, operands_of(node));
}

Form form_of(const Graph& graph, const Node& node) {
  return update_form(graph, node, operands_of(node));
}

/// Decay 2, first moment 3, second moment 4, root, quotients and step 6, a maximum.
double flops_of(const Graph& graph, const Node& node) {
  return update_flops(
      graph, node, 13.0 + 2 * (node.attributes.real("weight_decay") != 0) + (node.attributes.integer("amsgrad") != 0));
}

} // namespace

std::vector<Operator> adam_family() {
  return {{"adam_update", infer, form_of, nullptr, flops_of, states_in_place()}};
}

} // namespace soybean::ops
