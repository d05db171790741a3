#pragma once
// Small networks and a machine for the tests of explanations.
#include "explain/costed.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "plan/planner.hpp"
#include "unit/machine/example.hpp"

#include <string>

namespace soybean::explain {

/// Two dense layers of equal width with a relu between them.
inline graph::Graph mlp(std::int64_t batch, std::int64_t width, const std::string& name = "fc1") {
  graph::Graph graph;
  graph.name = "mlp";
  graph::TensorId x = ops::input_source(graph, batch, {width});
  x = ops::activate(graph, "relu", ops::dense_layer(graph, name, x, {.units = width}));
  x = ops::dense_layer(graph, "fc2", x, {.units = width});
  ops::loss_layer(graph, x);
  ops::add_backward_and_update(graph, {.momentum = 0.9});
  return graph;
}

inline machine::Setting setting_of(const tiling::Mesh& mesh) {
  machine::Machine machine = machine::parse_machine(machine::example_text(), "m.toml");
  machine.rates(machine::Precision::fp64) = machine.rates(machine::Precision::fp32);
  return machine::make_setting(machine, mesh, machine::Precision::fp32);
}

inline Costed cost_of(const Subject& subject, const tiling::Mesh& mesh, const std::string& strategy = "auto") {
  return cost(subject, plan::make_plan(subject.graph, mesh, {.strategy = strategy}));
}

} // namespace soybean::explain
