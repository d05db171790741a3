// Bounding and excluding never loses the optimum: the search with and without them, and bounds against true minima.
#include "plan/search.hpp"

#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "plan/planner.hpp"
#include "plan/relaxation.hpp"
#include "plan/strategy.hpp"
#include "support/random_graph.hpp"
#include "unit/plan/tiny_graphs.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace soybean::plan {
namespace {

constexpr std::int64_t entries = 50'000'000;

/// A problem with what it refers to.
struct Case {
  Case(graph::Graph g, const tiling::Mesh& mesh) : graph(std::move(g)), model(make_model(graph)), costs(mesh) {
    problem = make_problem(model, costs, make_domain(model, make_rules(model, "auto", Images::whole), mesh, {}));
  }
  graph::Graph graph;
  Model model;
  MoveCosts costs;
  Problem problem;
};

std::int64_t held(const Case& c, const Solution& solution) {
  std::int64_t sum = 0;
  for (const Term& term : c.problem.terms) sum += term_cost(term, solution.assignment).held;
  return sum;
}

std::int64_t bytes(const Case& c, const Solution& solution) {
  std::int64_t sum = 0;
  for (const Term& term : c.problem.terms) sum += term_cost(term, solution.assignment).price;
  return sum;
}

TEST(Search, bounds_first_or_not_gives_the_same_cost) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const tiling::Mesh mesh = seed % 2 == 0 ? tiling::Mesh{{2, 2}} : tiling::Mesh{{3}};
    const Case c(support::random_graph(seed, {.layers = 4}), mesh);

    const Solution plain = solve(c.problem, {.table_entries = entries, .easy_work = 1e12});
    const Solution bounded = solve(c.problem, {.table_entries = entries, .easy_work = 1});

    const Solution split = solve(c.problem, {.table_entries = entries, .easy_work = 1e12, .whole_entries = 0});
    const Solution both = solve(c.problem, {.table_entries = entries, .easy_work = 1, .whole_entries = 0});

    ASSERT_TRUE(plain.optimal && bounded.optimal && split.optimal && both.optimal) << "seed " << seed;
    EXPECT_EQ(split.price, plain.price) << "seed " << seed;
    EXPECT_EQ(bytes(c, split), plain.price) << "seed " << seed;
    EXPECT_EQ(both.price, plain.price) << "seed " << seed;
    EXPECT_EQ(bytes(c, both), plain.price) << "seed " << seed;
    EXPECT_EQ(bytes(c, plain), plain.price);
    EXPECT_EQ(bounded.price, plain.price) << "seed " << seed;
    EXPECT_EQ(bytes(c, bounded), plain.price) << "seed " << seed;
    EXPECT_EQ(held(c, bounded), held(c, plain)) << "seed " << seed;
  }
}

TEST(Search, a_known_plan_only_cuts_off_what_is_dearer) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c(support::random_graph(seed, {.layers = 4}), tiling::Mesh{{2, 2}});
    const std::int64_t best = solve(c.problem, {.table_entries = entries}).price;
    for (const double easy : {1.0, 1e12}) {
      const Solution same = solve(c.problem, {.incumbent = best, .table_entries = entries, .easy_work = easy});
      const Solution none = solve(c.problem, {.incumbent = best - 1, .table_entries = entries, .easy_work = easy});
      EXPECT_TRUE(same.found && same.optimal);
      EXPECT_EQ(same.price, best);
      EXPECT_TRUE(!none.found && none.optimal);
    }
  }
}

TEST(Relaxation, bounds_are_below_the_optimum_with_each_value) {
  for (unsigned seed = 0; seed < 25; ++seed) {
    const Case c(test::TinyGraphs(seed).make({}), tiling::Mesh{{2}});
    Relaxation relaxation(c.problem, never);
    for (int sweep = 0; sweep < 4; ++sweep) relaxation.sweep();
    EXPECT_LE(relaxation.bound(), solve(c.problem, {.table_entries = entries}).price);
    for (std::size_t v = 0; v < c.problem.values.size(); ++v)
      for (std::size_t x = 0; x < c.problem.values[v].size(); ++x) {
        std::vector<std::vector<int>> keep;
        for (const auto& values : c.problem.values) {
          keep.emplace_back(values.size());
          std::iota(keep.back().begin(), keep.back().end(), 0);
        }
        keep[v] = {static_cast<int>(x)};
        const Solution with = solve(restrict_values(c.problem, keep), {.table_entries = entries});
        EXPECT_LE(relaxation.bound(static_cast<int>(v), static_cast<int>(x)), with.found ? with.price : never)
            << "seed " << seed << " variable " << v << " value " << x;
      }
  }
}

TEST(Relaxation, bounds_grow_with_sweeps_and_keep_every_optimal_value) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Case c(support::random_graph(seed, {.layers = 4}), tiling::Mesh{{2, 2}});
    const Solution best = solve(c.problem, {.table_entries = entries, .easy_work = 1e12});
    Relaxation relaxation(c.problem, best.price);
    std::int64_t before = 0;
    for (int sweep = 0; sweep < 6; ++sweep) {
      relaxation.sweep();
      EXPECT_GE(relaxation.bound(), before);
      EXPECT_LE(relaxation.bound(), best.price) << "seed " << seed;
      before = relaxation.bound();
    }
    for (std::size_t v = 0; v < best.assignment.size(); ++v) {
      const std::vector<int>& values = relaxation.values()[v];
      EXPECT_TRUE(std::binary_search(values.begin(), values.end(), best.assignment[v])) << "seed " << seed;
    }
  }
}

/// One layer's result is used by so many that neither all sets of consumers nor all sets of copies can be gone through.
TEST(Relaxation, bounds_grow_where_a_tensor_has_many_consumers) {
  graph::Graph graph{.name = "fan"};
  const graph::TensorId x = ops::dense_layer(graph, "a", ops::input_source(graph, 16, {16}), {.units = 16});
  std::vector<graph::TensorId> branches;
  branches.reserve(7);
  for (int i = 0; i < 7; ++i)
    branches.push_back(ops::dense_layer(graph, "b" + std::to_string(i), x, {.units = 8 + 8 * (i % 3 == 0 ? 0 : 1)}));
  std::vector<graph::TensorId> narrow, wide;
  for (graph::TensorId t : branches) (graph.tensors[t].shape[1] == 8 ? narrow : wide).push_back(t);
  const graph::TensorId n = ops::add_layer(graph, "narrow", narrow), w = ops::add_layer(graph, "wide", wide);
  ops::add_losses(graph, {.terms = {{.name = "one", .input = n}, {.name = "two", .input = w}}});
  ops::add_backward_and_update(graph, {.momentum = 0.9});
  const Case c(std::move(graph), tiling::Mesh{{2, 2, 2}});
  const plan::Plan plan = make_plan(c.graph, tiling::Mesh{{2, 2, 2}}, {});
  for (const std::int64_t limit : {never, plan.bytes}) {
    Relaxation relaxation(c.problem, limit);
    std::int64_t before = 0;
    for (int sweep = 0; sweep < 8; ++sweep) {
      relaxation.sweep();
      EXPECT_GE(relaxation.bound(), before);
      EXPECT_LE(relaxation.bound(), plan.bytes);
      before = relaxation.bound();
    }
    EXPECT_GT(before, 0);
  }
}

/// Of plans in which the variable has that value.
std::int64_t least_with(const Case& c, std::size_t variable, int value) {
  std::vector<std::vector<int>> keep;
  for (const auto& values : c.problem.values) {
    keep.emplace_back(values.size());
    std::iota(keep.back().begin(), keep.back().end(), 0);
  }
  keep[variable] = {value};
  return solve(restrict_values(c.problem, keep), {.table_entries = entries}).price;
}

TEST(Search, no_plan_is_below_the_outlook_where_only_part_of_the_plans_was_looked_at) {
  int parts = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Case c(support::random_graph(seed, {.layers = 2}), tiling::Mesh{{2, 2}});
    const std::int64_t best = solve(c.problem, {.table_entries = entries}).price;
    const std::int64_t incumbent = best + best / 2;
    const std::vector<double> works = {1, 30, 100, 300}; // that few is easy leads to parts
    std::vector<Outlook> looks;
    looks.reserve(works.size());
    for (const double easy : works)
      looks.push_back(Forecast(c.problem, {.incumbent = incumbent, .table_entries = entries, .easy_work = easy})
                          .outlook(incumbent));
    for (std::size_t v = 0; v < c.problem.values.size(); ++v)
      for (std::size_t x = 0; x < c.problem.values[v].size(); ++x) {
        const std::int64_t least = least_with(c, v, static_cast<int>(x));
        if (least > incumbent) continue;
        for (const Outlook& look : looks) {
          EXPECT_LE(look.least[v][x], least) << "seed " << seed << ", variable " << v << ", value " << x;
          parts += look.reached[v][x] > least;
        }
      }
  }
  EXPECT_GT(parts, 0); // else all was looked at
}

} // namespace
} // namespace soybean::plan
