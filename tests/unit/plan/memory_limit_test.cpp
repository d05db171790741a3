// Plans within a rank's memory.
#include "plan/planner.hpp"

#include "base/error.hpp"
#include "support/random_graph.hpp"
#include "support/small_machine.hpp"

#include <gtest/gtest.h>

namespace soybean::plan {
namespace {

using tiling::Mesh;

std::int64_t held(const graph::Graph&, const Plan& plan) {
  return plan.held_bytes;
}

/// A third of the way from what the leanest plan holds to what the cheapest does.
std::int64_t limit_between(std::int64_t leanest, std::int64_t cheapest) {
  return leanest + (cheapest - leanest) / 3;
}

/// What the error calls the smallest limit, in bytes: texts have two decimals.
std::int64_t leanest(const graph::Graph& graph, const Mesh& mesh, Options options) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  options.memory = 1;
  options.peak = [&](const graph::Graph&, const Plan& plan) {
    least = std::min(least, plan.held_bytes);
    return plan.held_bytes;
  };
  EXPECT_THROW(make_plan(graph, mesh, options), Error);
  return least;
}

TEST(MemoryLimit, dearer_plans_that_hold_less_are_found) {
  int dearer = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.layers = 3});
    const machine::Setting machine = support::small_hosts(Mesh{{2, 2}}, 4);
    Options options{.machine = seed % 2 == 0 ? nullptr : &machine};
    const Plan cheapest = make_plan(graph, machine.mesh, options);
    const std::int64_t least = leanest(graph, machine.mesh, options);
    ASSERT_LE(least, cheapest.held_bytes);

    options.memory = limit_between(least, cheapest.held_bytes);
    options.peak = held;
    const Plan plan = make_plan(graph, machine.mesh, options);

    EXPECT_LE(plan.held_bytes, options.memory) << "seed " << seed;
    EXPECT_GE(plan.price(), cheapest.price());
    EXPECT_EQ(plan.penalty, 0);
    verify(graph, plan);
    const auto bound = static_cast<double>(std::max<std::int64_t>(1, cheapest.price())); // that of all plans
    EXPECT_NEAR(plan.gap, static_cast<double>(plan.price() - cheapest.price()) / bound, 1e-12);
    EXPECT_EQ(plan.status == Status::optimal, plan.price() == cheapest.price());
    dearer += plan.price() > cheapest.price();
    EXPECT_EQ(make_plan(graph, machine.mesh, options).stored, plan.stored);
  }
  EXPECT_GE(dearer, 3);
}

TEST(MemoryLimit, what_a_named_strategy_meets_auto_meets) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.layers = 3});
    for (const char* strategy : {"data", "model", "kcut"}) {
      const Plan named = make_plan(graph, Mesh{{3}}, {.strategy = strategy});
      const Plan plan = make_plan(graph, Mesh{{3}}, {.memory = named.held_bytes, .peak = held});
      EXPECT_LE(plan.held_bytes, named.held_bytes) << strategy << " seed " << seed;
      EXPECT_LE(plan.bytes, named.bytes) << strategy << " seed " << seed;
      EXPECT_EQ(plan.strategy, "auto");
    }
  }
}

TEST(MemoryLimit, is_no_concern_of_plans_that_fit) {
  const graph::Graph graph = support::random_graph(3, {.layers = 3});
  const Plan plan = make_plan(graph, Mesh{{2, 2}}, {});
  Options options{.memory = plan.held_bytes, .peak = held};
  EXPECT_EQ(to_string(graph, make_plan(graph, Mesh{{2, 2}}, options)), to_string(graph, plan));
}

TEST(MemoryLimit, what_fits_nowhere_is_refused_with_what_takes_most) {
  const graph::Graph graph = support::random_graph(3, {.layers = 3});
  for (const char* strategy : {"auto", "data"})
    for (const Mesh& mesh : {Mesh{{2, 2}}, Mesh{}}) {
      const Options options{
          .strategy = strategy, .memory = 10, .peak = held, .memory_where = "m.toml:4: parallel.memory"};
      try {
        make_plan(graph, mesh, options);
        FAIL() << "nothing was refused";
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_TRUE(text.starts_with("m.toml:4: parallel.memory, got 10 B for a rank expected at least ")) << text;
        EXPECT_NE(text.find("B of '"), std::string::npos) << text;
      }
    }
}

} // namespace
} // namespace soybean::plan
