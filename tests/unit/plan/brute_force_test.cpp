// `optimal` against brute force on small random graphs, on 2 to 12 ranks.
#include "unit/plan/brute_force.hpp"

#include "plan/planner.hpp"
#include "support/small_machine.hpp"
#include "unit/plan/tiny_graphs.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace soybean {
namespace {

struct Trial {
  std::vector<int> cuts;
  int graphs;
  test::TinyOptions options;
};

void PrintTo(const Trial& trial, std::ostream* out) {
  *out << trial.graphs << " graphs on mesh " << to_string(tiling::Mesh{trial.cuts});
}

class RandomTinyGraphs : public testing::TestWithParam<Trial> {};

/// As the planner does: none where each rank has a sample, columns on few ranks alone.
test::ImageSplits image_splits(const graph::Graph& graph, const tiling::Mesh& mesh) {
  const std::int64_t samples = graph.tensors[graph::find_tensor(graph, "input")].shape[0];
  if (samples >= tiling::ranks(mesh)) return test::ImageSplits::none;
  return tiling::ranks(mesh) > 8 ? test::ImageSplits::rows : test::ImageSplits::rows_and_columns;
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

/// The cheapest of all plans, none of which is to be cheaper than this one.
test::Cheapest cheapest(const graph::Graph& graph, const tiling::Mesh& mesh, const plan::Plan& plan,
                        const machine::Setting* machine) {
  test::Scope scope{.images = image_splits(graph, mesh), .machine = machine};
  const test::Price price{plan.price(), plan.held_bytes};
  const test::Cheapest found = test::brute_force(graph, mesh, price, scope);
  if (found.found) return found;
  // It may do what a named strategy does, even leave ranks idle, where nothing else is as cheap.
  const plan::Plan named = cheapest_named(graph, mesh, machine);
  EXPECT_FALSE(test::brute_force(graph, mesh, {named.price(), 0}, scope).found);
  scope.admitted = &named;
  return test::brute_force(graph, mesh, price, scope);
}

/// Where all plans are looked at together; of more, only those that may move less than the best one known.
bool ties_are_exact(const tiling::Mesh& mesh) {
  return mesh.cuts.size() == 1 || tiling::ranks(mesh) < 8;
}

void compare(const graph::Graph& graph, const tiling::Mesh& mesh, const machine::Setting* machine = nullptr) {
  const plan::Plan plan = plan::make_plan(graph, mesh, {.machine = machine});
  plan::verify(graph, plan);
  EXPECT_EQ(plan.status, plan::Status::optimal);

  const test::Cheapest best = cheapest(graph, mesh, plan, machine);

  ASSERT_TRUE(best.found) << "the plan's cost is too low";
  EXPECT_EQ(plan.price(), best.price.moved);
  if (ties_are_exact(mesh)) {
    EXPECT_EQ(plan.held_bytes, best.price.held);
  }
  // Nor would splitting rows or columns move less, on a single cut.
  if (machine == nullptr && mesh.cuts.size() == 1 && image_splits(graph, mesh) == test::ImageSplits::none) {
    EXPECT_FALSE(test::brute_force(graph, mesh, {plan.bytes, 0}).found);
  }
}

/// Compares plans of random graphs, each with what `machine(seed)` gives.
template<class Machine>
void compare_all(const Trial& trial, int graphs, const Machine& machine) {
  const tiling::Mesh mesh{trial.cuts};
  const char* more = std::getenv("SOYBEAN_RANDOM_CASES"); // of each mesh, for the long matrices
  if (more != nullptr) graphs = std::atoi(more);
  ASSERT_GT(graphs, 0);
  for (int seed = 0; seed < graphs && !testing::Test::HasFailure(); ++seed) {
    const unsigned own = 1000 * static_cast<unsigned>(tiling::ranks(mesh)) + static_cast<unsigned>(seed);
    const graph::Graph graph = test::TinyGraphs(own).make(trial.options);
    SCOPED_TRACE("seed " + std::to_string(own) + " on " + to_string(mesh) + '\n' + to_string(graph));
    const std::optional<machine::Setting> setting = machine(mesh, seed);
    compare(graph, mesh, setting ? &*setting : nullptr);
  }
}

TEST_P(RandomTinyGraphs, have_no_cheaper_plan_than_the_optimal_one) {
  compare_all(GetParam(), GetParam().graphs,
              [](const tiling::Mesh&, int) { return std::optional<machine::Setting>(); });
}

TEST_P(RandomTinyGraphs, have_no_faster_plan_than_the_optimal_one) {
  compare_all(GetParam(), ties_are_exact({GetParam().cuts}) ? GetParam().graphs / 4 : 4,
              [](const tiling::Mesh& mesh, int seed) {
                return std::optional(support::small_hosts(mesh, seed % 3 == 0 ? 1 : 12));
              });
}

TEST(BruteForce, bounds_lose_nothing) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const graph::Graph graph = test::TinyGraphs(seed).make({});
    const tiling::Mesh mesh{{seed % 2 == 0 ? 2 : 3}};
    const test::Price any{std::int64_t{1} << 30, 0};

    const test::Cheapest all = test::brute_force(graph, mesh, any, {.bound_rows = 0});
    ASSERT_TRUE(all.found);
    const test::Price less{all.price.moved, all.price.held - 1};

    for (const std::size_t rows : {std::size_t{20}, std::size_t{2000}}) {
      EXPECT_EQ(test::brute_force(graph, mesh, all.price, {.bound_rows = rows}).price, all.price) << "seed " << seed;
      EXPECT_FALSE(test::brute_force(graph, mesh, less, {.bound_rows = rows}).found) << "seed " << seed;
    }
  }
}

constexpr test::TinyOptions narrow{.weights = 2, .extent = 6}, broad{.weights = 2, .extent = 13},
    deep{.weights = 3, .extent = 13};

INSTANTIATE_TEST_SUITE_P(Tiny, RandomTinyGraphs,
                         testing::Values(Trial{{2}, 60, deep}, Trial{{3}, 50, deep}, Trial{{2, 2}, 50, deep},
                                         Trial{{4}, 50, narrow}, Trial{{5}, 50, deep}, Trial{{3, 2}, 50, deep},
                                         Trial{{7}, 50, deep}, Trial{{2, 2, 2}, 40, broad}, Trial{{3, 3}, 50, deep},
                                         Trial{{5, 2}, 50, deep}, Trial{{11}, 50, deep}, Trial{{3, 2, 2}, 40, broad}),
                         [](const testing::TestParamInfo<Trial>& info) {
                           std::string name = "mesh";
                           for (int cut : info.param.cuts) name += "_" + std::to_string(cut);
                           return name;
                         });

} // namespace
} // namespace soybean
