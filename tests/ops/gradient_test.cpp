// The gradient of the loss by every parameter against central differences of the forward pass, in f64.
#include "ops/cases.hpp"
#include "ops/compare.hpp"

#include <gtest/gtest.h>

namespace soybean::ops_test {
namespace {

using graph::Graph;
using graph::TensorId;
using support::Values;

class Gradient : public ::testing::TestWithParam<Case> {};

double loss(const device::Exec& exec, const Graph& graph, Values& values) {
  support::run_serial(exec, graph, values, support::Part::forward);
  return values[graph.metrics[0]].get(0);
}

/// The gradient that the update of a parameter reads: of that name, or a result of a node that makes several; lamb's
/// update reads a direction made of it.
TensorId gradient_of(const Graph& graph, TensorId parameter) {
  const TensorId named = graph::find_tensor(graph, graph.tensors[parameter].name + ".grad");
  if (named != graph::none) return named;
  const graph::Node& update = graph.nodes[graph.tensors[graph.tensors[parameter].next].producer];
  if (update.op != "lamb_update") return update.inputs[1];
  return graph.nodes[graph.tensors[update.inputs[1]].producer].inputs[1];
}

void check(const device::Exec& exec, const Graph& graph, std::uint64_t seed) {
  constexpr double step = 1e-5;
  Values values = support::allocate(graph);
  support::fill_sources(graph, values, seed);
  support::run_serial(exec, graph, values);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].role != graph::Role::parameter || graph.tensors[t].next == graph::none) continue;
    const support::Block gradient = values[gradient_of(graph, static_cast<TensorId>(t))].copy();
    Difference d;
    for (std::int64_t i = 0; i < gradient.size(); ++i) {
      const double value = values[t].get(i);
      values[t].set(i, value + step);
      const double above = loss(exec, graph, values);
      values[t].set(i, value - step);
      const double below = loss(exec, graph, values);
      values[t].set(i, value);
      d.add(gradient.get(i), (above - below) / (2 * step));
    }
    EXPECT_GT(d.norm, 0) << graph.tensors[t].name;
    EXPECT_LE(d.relative(), 1e-6) << graph.tensors[t].name;
  }
}

TEST_P(Gradient, EqualsCentralDifferences) {
  const device::Exec exec(1);
  check(exec, GetParam().build(DType::f64, {.batch = 3, .channels = 2, .height = 5, .width = 4, .units = 3}), 1);
  check(exec, GetParam().build(DType::f64, {.batch = 2, .channels = 3, .height = 3, .width = 5, .units = 2}), 2);
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(info.param.name);
}
INSTANTIATE_TEST_SUITE_P(Operators, Gradient, ::testing::ValuesIn(cases()), name_of);

} // namespace
} // namespace soybean::ops_test
