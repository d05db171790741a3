#pragma once
// Small graphs and hand-made plans for the tests of lowering, passes and memory.
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"
#include "ops/form.hpp"
#include "ops/layers.hpp"
#include "ops/operator.hpp"
#include "plan/plan.hpp"

#include <string>
#include <string_view>

namespace soybean::program {

/// input [4, 6] → dense 8 → relu → dense 4 → loss, with momentum.
inline graph::Graph tiny_mlp() {
  graph::Graph g;
  g.name = "tiny";
  graph::TensorId x = ops::input_source(g, 4, {6});
  x = ops::dense_layer(g, "fc1", x, {.units = 8});
  x = ops::activate(g, "relu", x);
  x = ops::dense_layer(g, "fc2", x, {.units = 4, .bias = false});
  ops::loss_layer(g, x);
  ops::add_backward_and_update(g, {.momentum = 0.9});
  return g;
}

/// input [4, 2, 6, 6] → conv 4 → relu → flatten → dense 4 → loss, plain descent.
inline graph::Graph tiny_cnn() {
  graph::Graph g;
  g.name = "tiny_cnn";
  graph::TensorId x = ops::input_source(g, 4, {2, 6, 6});
  x = ops::conv2d_layer(g, "conv", x, {.channels = 4, .kernel = {3, 3}, .padding = {1, 1}});
  x = ops::activate(g, "relu", x);
  x = ops::flatten_layer(g, "flat", x);
  x = ops::dense_layer(g, "fc", x, {.units = 4});
  ops::loss_layer(g, x);
  ops::add_backward_and_update(g, {});
  return g;
}

/// The index called `name` of a node's form, or replicated if it has none of that name that may be split.
inline ops::Choice choice_of(const graph::Graph& g, const graph::Node& n, std::string_view name) {
  const ops::Form form = ops::form(g, n);
  for (std::size_t i = 0; i < form.indices.size(); ++i)
    if (form.indices[i].splittable && (form.indices[i].name == name || (name == "batch" && form.indices[i].batch)))
      return static_cast<ops::Choice>(i);
  return ops::choose_replicated;
}

/// Stored tilings that go with choices: a result as it is produced, replicated if that is partial; parameters and
/// states replicated; inputs as first needed. Then the costs.
inline void complete(const graph::Graph& g, plan::Plan& plan) {
  plan.strategy = "file";
  plan.stored.assign(g.tensors.size(), tiling::replicated(plan.mesh));
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    const graph::Node& node = g.nodes[n];
    const auto tilings = ops::operand_tilings(ops::form(g, node), g, node, plan.mesh, plan.choices[n]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const graph::Tensor& t = g.tensors[node.inputs[i]];
      const bool kept = t.role == graph::Role::parameter || t.role == graph::Role::state;
      if (t.producer == graph::none && !kept && t.consumers.front() == static_cast<graph::NodeId>(n))
        plan.stored[node.inputs[i]] = tilings.inputs[i];
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const graph::Tensor& t = g.tensors[node.outputs[i]];
      if (t.previous != graph::none || t.role == graph::Role::metric) continue;
      if (t.consumers.empty() || !tiling::has_partial(tilings.outputs[i]))
        plan.stored[node.outputs[i]] = tilings.outputs[i];
    }
  }
  plan::evaluate(g, plan);
}

/// Every node splits the batch on every cut; updates are replicated.
inline plan::Plan data_plan(const graph::Graph& g, const tiling::Mesh& mesh) {
  plan::Plan plan;
  plan.mesh = mesh;
  for (const graph::Node& n : g.nodes) plan.choices.emplace_back(mesh.cuts.size(), choice_of(g, n, "batch"));
  complete(g, plan);
  return plan;
}

} // namespace soybean::program
