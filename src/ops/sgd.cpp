// One step of stochastic gradient descent for one parameter, as torch.optim.SGD (formula in autodiff.hpp).
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

bool has_momentum(const Node& node) {
  return node.attributes.real("momentum") != 0;
}

std::vector<Result> infer(const Graph& graph, const Node& node) {
  expect_inputs(node, has_momentum(node) ? 4 : 3);
  ensure(node.attributes.has("weight_decay") && node.attributes.has("nesterov"), "sgd_update lacks attributes");
  const Tensor &w = input(graph, node, 0), &grad = input(graph, node, 1);
  ensure(grad.shape == w.shape && grad.spatial == w.spatial && input(graph, node, 2).role == Role::hyper,
         fmt::format("the operands of node '{}' do not fit", node.name));
  std::vector<Result> results{{.suffix = ".next",
                               .shape = w.shape,
                               .units = w.units,
                               .dtype = graph.precision,
                               .role = Role::parameter,
                               .spatial = w.spatial}};
  if (!has_momentum(node)) return results;
  const Tensor& v = input(graph, node, 3);
  ensure(v.shape == w.shape && v.units == w.units && v.spatial == w.spatial && v.role == Role::state,
         fmt::format("the momentum of node '{}' does not fit", node.name));
  results.push_back(results[0]);
  results[1].suffix = ".momentum.next";
  results[1].role = Role::state;
  return results;
}

Form form_of(const Graph& graph, const Node& node) {
  const std::string dims = dims_text(input(graph, node, 0).shape.size(), false);
  std::string text = dims + ", " + dims + ", .";
  text += has_momentum(node) ? ", " + dims + " -> " + dims + ", " + dims : " -> " + dims;
  return make_form(graph, node, {.text = text, .split = "d0 d1", .replicable = true});
}

/// A multiply-add for each of lr, weight decay, momentum and Nesterov's look ahead.
double flops_of(const Graph& graph, const Node& node) {
  const double terms = 1.0 + (node.attributes.real("weight_decay") != 0) + has_momentum(node) +
                       (node.attributes.integer("nesterov") != 0);
  return 2 * terms * result_elements(graph, node);
}

} // namespace

std::vector<Operator> sgd_family() {
  return {{"sgd_update", infer, form_of, nullptr, flops_of, {0, 3}}};
}

} // namespace soybean::ops
