// Classes of plans bound their members: moves against the cheapest of all members, whole networks against real plans.
#include "plan/classes.hpp"

#include "plan/move_costs.hpp"
#include "plan/planner.hpp"
#include "plan/search.hpp"
#include "support/random_graph.hpp"
#include "tiling/redistribution.hpp"
#include "unit/plan/networks.hpp"
#include "unit/plan/random_tiling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace soybean::plan {
namespace {

using tiling::Mesh;
using tiling::Tiling;

TEST(Classes, members_are_all_orders_over_cuts_of_equal_parts) {
  const Mesh mesh{{2, 3, 2, 2}};
  const std::vector<Choices> list = members(class_of(Choices{4, 7, 1, 4}, mesh.cuts), mesh.cuts);
  EXPECT_EQ((std::set<Choices>(list.begin(), list.end())),
            (std::set<Choices>{{1, 7, 4, 4}, {4, 7, 1, 4}, {4, 7, 4, 1}}));
  EXPECT_EQ(list.size(), 3u);
  EXPECT_EQ(member_count({1, 7, 4, 4}, mesh.cuts), 3);
  for (const Choices& member : list) EXPECT_EQ(class_of(member, mesh.cuts), (Choices{1, 7, 4, 4}));
}

TEST(Classes, lists_that_continue_are_representatives) {
  const Mesh mesh{{2, 3, 2}};
  std::set<Choices> continued, represented;
  for (ops::Choice a = 0; a < 3; ++a)
    for (ops::Choice b = 0; b < 3; ++b)
      for (ops::Choice c = 0; c < 3; ++c) {
        const Choices list = {a, b, c};
        represented.insert(class_of(list, mesh.cuts));
        if (continues_class(Choices{}, a, mesh.cuts) && continues_class(Choices{a}, b, mesh.cuts) &&
            continues_class(Choices{a, b}, c, mesh.cuts))
          continued.insert(list);
      }
  EXPECT_EQ(continued, represented);
}

/// Odd extents, a cut of other parts in between, partial sources: no move is below its class's.
TEST(Classes, no_member_moves_less) {
  std::mt19937 random(3);
  int tight = 0, trials = 0;
  for (const Mesh& mesh : {Mesh{{2, 2, 2}}, Mesh{{2, 3, 2}}, Mesh{{3, 3}}, Mesh{{2, 2, 2, 2}}})
    for (const Shape& shape : {Shape{16, 48}, Shape{7, 10}, Shape{5, 12, 3}, Shape{2, 9}})
      for (int trial = 0; trial < 60; ++trial) {
        const Tiling from = test::random_tiling(random, shape, mesh, trial % 2 == 0);
        Tiling to = test::random_tiling(random, shape, mesh, false);
        if (trial % 3 == 0) to = test::with_halos(random, std::move(to), shape, mesh);
        const std::int64_t least = least_moved(mesh, shape, class_of(from, mesh.cuts), class_of(to, mesh.cuts));
        const std::int64_t moved = tiling::elements_moved(mesh, {shape, {}}, from, to);
        EXPECT_LE(least, moved) << tiling::to_string(from) << " -> " << tiling::to_string(to);
        EXPECT_GE(least, 0);
        tight += least == moved;
        ++trials;
      }
  EXPECT_GT(tight, trials / 4); // else the bound says nothing
}

TEST(Classes, no_plan_is_below_the_outlook_of_its_classes) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.layers = 4});
    const Mesh mesh = seed % 2 == 0 ? Mesh{{2, 2}} : Mesh{{2, 2, 2}};
    const Plan plan = make_plan(graph, mesh, {});
    ASSERT_EQ(plan.status, Status::optimal);
    const Model model = make_model(graph);
    MoveCosts costs(mesh, Detail::classes);
    const Problem problem = make_problem(
        model, costs, make_class_domain(model, make_rules(model, "auto", Images::whole), mesh, mesh.cuts, {}));

    const Outlook look = Forecast(problem, {.table_entries = 50'000'000}).outlook(never);

    EXPECT_TRUE(look.exact);
    int elsewhere = 0; // idle where that is cheaper than all plans of busy ranks
    std::int64_t least = 0;
    for (std::size_t v = 0; v < problem.values.size(); ++v) {
      const Choices mine = class_of(plan.choices[model.members[v][0]], mesh.cuts);
      bool found = false;
      for (std::size_t x = 0; x < problem.values[v].size(); ++x) {
        EXPECT_GE(look.least[v][x], look.bound);
        const auto& all = problem.equivalent[v][x];
        if (std::find(all.begin(), all.end(), mine) == all.end()) continue;
        found = true;
        least = std::max(least, look.least[v][x]);
      }
      elsewhere += !found;
    }
    if (elsewhere > 0) continue;
    EXPECT_LE(least, plan.bytes) << "seed " << seed;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

} // namespace
} // namespace soybean::plan
