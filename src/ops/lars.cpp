// One step of LARS for one parameter (You, Gitman, Ginsburg, "Large batch training of convolutional networks", arXiv
// 1708.03888, equation 6 and algorithm 1; formulas in autodiff.hpp). The norms of weight and gradient come as sums of
// squares over the whole tensors.
#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/families.hpp"
#include "ops/updates.hpp"

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;

UpdateOperands operands_of(const Node& node) {
  UpdateOperands operands{.norms = node.attributes.integer("adapted") != 0};
  if (node.attributes.real("momentum") != 0) operands.states = {"momentum"};
  return operands;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  for (const char* name : {"weight_decay", "trust", "eps"})
    ensure(node.attributes.has(name), "lars_update lacks attributes");
  return update_results(graph, node, operands_of(node));
}

Form form_of(const Graph& graph, const Node& node) {
  return update_form(graph, node, operands_of(node));
}

/// Decay, momentum, step.
double flops_of(const Graph& graph, const Node& node) {
  return update_flops(
      graph, node, 2.0 + 2 * (node.attributes.real("weight_decay") != 0) + 2 * (node.attributes.real("momentum") != 0));
}

} // namespace

std::vector<Operator> lars_family() {
  return {{"lars_update", infer, form_of, nullptr, flops_of, states_in_place()}};
}

} // namespace soybean::ops
