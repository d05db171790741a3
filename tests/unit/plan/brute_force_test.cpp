// `optimal` against brute force on tiny graphs, and elements moved against the tracking of elements.
#include "unit/plan/brute_force.hpp"

#include "plan/move_costs.hpp"
#include "plan/planner.hpp"
#include "support/small_machine.hpp"
#include "tiling/redistribution.hpp"
#include "unit/plan/tiny_graphs.hpp"

#include <gtest/gtest.h>

namespace soybean {
namespace {

struct Trial {
  int first, count; ///< seeds
  int weights;      ///< layers with weights, at most
  std::vector<int> cuts;
};

class BruteForce : public testing::TestWithParam<Trial> {};

std::int64_t samples(const graph::Graph& graph) {
  return graph.tensors[graph::find_tensor(graph, "input")].shape[0];
}

plan::Plan cheapest_named(const graph::Graph& graph, const tiling::Mesh& mesh, const machine::Setting* machine) {
  plan::Plan best;
  for (const std::string& strategy : plan::strategies()) {
    if (strategy == "auto") continue;
    plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = strategy, .machine = machine});
    if (best.strategy.empty() || plan.price() < best.price()) best = std::move(plan);
  }
  return best;
}

/// Finds nothing cheaper than the plan, and the plan itself.
void compare(const graph::Graph& graph, const tiling::Mesh& mesh, const machine::Setting* machine) {
  const plan::Plan plan = plan::make_plan(graph, mesh, {.machine = machine});
  const test::Price price{plan.price(), plan.held_bytes};
  test::Scope scope{.images = samples(graph) < tiling::ranks(mesh), .machine = machine};
  test::Cheapest cheapest = test::brute_force(graph, mesh, price, scope);
  if (!cheapest.found) { // it may do what a named strategy does, even leave ranks idle, where nothing else is as cheap
    const plan::Plan named = cheapest_named(graph, mesh, machine);
    ASSERT_EQ(test::brute_force(graph, mesh, {named.price(), 0}, {.machine = machine}).found, false);
    scope.admitted = &named;
    cheapest = test::brute_force(graph, mesh, price, scope);
  }

  if (!scope.images && machine == nullptr) { // nor would splitting rows or columns move less
    EXPECT_FALSE(test::brute_force(graph, mesh, {plan.bytes, 0}).found) << to_string(graph);
  }
  EXPECT_EQ(plan.status, plan::Status::optimal);
  ASSERT_TRUE(cheapest.found) << "the plan's cost is too low\n" << to_string(graph);
  EXPECT_EQ(plan.price(), cheapest.price.moved) << to_string(graph);
  EXPECT_EQ(plan.held_bytes, cheapest.price.held) << to_string(graph);
  plan::verify(graph, plan);
}

TEST_P(BruteForce, finds_nothing_cheaper_than_the_plan_and_the_plan_itself) {
  const Trial& trial = GetParam();
  for (int seed = trial.first; seed < trial.first + trial.count; ++seed) {
    SCOPED_TRACE(seed);
    compare(test::TinyGraphs(static_cast<unsigned>(seed)).make(trial.weights), tiling::Mesh{trial.cuts}, nullptr);
  }
}

TEST_P(BruteForce, finds_nothing_faster_than_the_plan_and_the_plan_itself) {
  const Trial& trial = GetParam();
  const tiling::Mesh mesh{trial.cuts};
  for (int seed = trial.first; seed < trial.first + trial.count / 2; ++seed) {
    SCOPED_TRACE(seed);
    const machine::Setting setting = support::small_hosts(mesh, seed % 3 == 0 ? 1 : 12);
    compare(test::TinyGraphs(static_cast<unsigned>(seed)).make(trial.weights), mesh, &setting);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, BruteForce,
                         testing::Values(Trial{0, 120, 2, {2}}, Trial{100, 100, 2, {3}}, Trial{200, 25, 1, {2, 2}},
                                         Trial{300, 60, 1, {4}}),
                         [](const testing::TestParamInfo<Trial>& info) {
                           std::string name = "mesh";
                           for (int cut : info.param.cuts) name += "_" + std::to_string(cut);
                           return name;
                         });

} // namespace
} // namespace soybean
