// Plans that are to take the least time.
#include "plan/step_time.hpp"

#include "plan/classes.hpp"
#include "plan/planner.hpp"
#include "support/random_graph.hpp"
#include "support/small_machine.hpp"
#include "tiling/redistribution.hpp"
#include "unit/plan/random_tiling.hpp"

#include <gtest/gtest.h>

#include <random>

namespace soybean::plan {
namespace {

using tiling::Mesh;
using tiling::Tiling;

/// Hosts of one cut, of two, and such that a cut is half inside and half between them.
TEST(StepTime, no_move_takes_less_than_its_class) {
  std::mt19937 random(5);
  int close = 0, trials = 0;
  for (const Mesh& mesh : {Mesh{{2, 2}}, Mesh{{2, 2, 2}}, Mesh{{3, 2}}, Mesh{{4}}, Mesh{{2, 2, 2, 2}}, Mesh{{2, 3, 2}}})
    for (const double slower : {1.0, 10.0})
      for (const Shape& shape : {Shape{16, 48}, Shape{7, 10}, Shape{5, 12, 3}, Shape{400, 360}})
        for (int trial = 0; trial < 40; ++trial) {
          const machine::Setting setting = support::small_hosts(mesh, slower);
          const LeastTime least(setting);
          const std::vector<int> alike = alike_cuts(setting);
          graph::Tensor tensor{.shape = shape, .units = Shape(shape.size(), 1)};
          const Tiling from = test::random_tiling(random, shape, mesh, trial % 2 == 0);
          Tiling to = test::random_tiling(random, shape, mesh, false);
          if (trial % 3 == 0) to = test::with_halos(random, std::move(to), shape, mesh);
          const Tiling from_class = class_of(from, alike), to_class = class_of(to, alike);
          const std::int64_t bound = least.moving(tensor, from_class, to_class),
                             time = moving_time(setting, tensor, from, to);
          EXPECT_LE(bound, time) << to_string(mesh) << ' ' << tiling::to_string(from) << " -> " << tiling::to_string(to)
                                 << " of " << soybean::to_string(shape) << " slower " << slower;
          EXPECT_EQ(bound > 0, from_class != to_class);
          close += 2 * bound >= time;
          ++trials;
        }
  EXPECT_GT(close, trials / 4); // else the bound says nothing
}

TEST(StepTime, no_strategy_is_faster_than_auto) {
  for (const std::vector<int>& cuts : {std::vector{2}, {2, 2}, {3, 2}})
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      const graph::Graph graph = support::random_graph(seed, {.layers = 3});
      const machine::Setting setting = support::small_hosts(Mesh{cuts}, 10);
      const Plan best = make_plan(graph, setting.mesh, {.machine = &setting});
      EXPECT_EQ(best.objective, Objective::time);
      for (const std::string& strategy : strategies())
        EXPECT_LE(best.nanoseconds,
                  make_plan(graph, setting.mesh, {.strategy = strategy, .machine = &setting}).nanoseconds)
            << strategy << " seed " << seed;
      const Plan fewest = make_plan(graph, setting.mesh, {});
      EXPECT_LE(fewest.bytes, best.bytes);
    }
}

/// Elements that cross the first cut, which leads from host to host.
std::int64_t between_hosts(const graph::Graph& graph, const Plan& plan) {
  std::int64_t elements = 0;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    if (is_free_source(tensor) || tensor.previous != graph::none) continue;
    const TensorMoves all = moves(graph, plan, static_cast<graph::TensorId>(t));
    if (!all.stored) continue;
    const auto add = [&](const Tiling& from, const Tiling& to) {
      for (const tiling::Step& step : tiling::path(plan.mesh, {tensor.shape, tensor.units}, from, to))
        if (step.kind == tiling::StepKind::exchange)
          elements += tiling::elements_from_outside(plan.mesh, tensor.shape, step.from, step.to, 1);
        else if (step.kind != tiling::StepKind::slice && step.cut == 0)
          elements += step.elements;
    };
    if (!all.produced.empty()) add(all.produced, plan.stored[t]);
    for (const Tiling& need : all.needed) add(plan.stored[t], need);
  }
  return elements;
}

TEST(StepTime, slower_links_between_hosts_are_used_less) {
  const Mesh mesh{{2, 2}};
  int less = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.layers = 5});
    const machine::Setting even = support::small_hosts(mesh, 1), slow = support::small_hosts(mesh, 100);
    const Plan before = make_plan(graph, mesh, {.machine = &even}), after = make_plan(graph, mesh, {.machine = &slow});
    EXPECT_LE(between_hosts(graph, after), between_hosts(graph, before)) << "seed " << seed;
    less += between_hosts(graph, after) < between_hosts(graph, before);
    EXPECT_LE(before.nanoseconds, after.nanoseconds);
  }
  EXPECT_GE(less, 3);
}

TEST(StepTime, hopelessly_slow_links_are_no_trouble) {
  const graph::Graph graph = support::random_graph(2, {.layers = 3});
  machine::Setting setting = support::small_hosts(Mesh{{2, 2}}, 1);
  machine::Machine machine = setting.machine;
  for (machine::Link& link : machine.links) link.bandwidth = 1e-3;
  setting = machine::make_setting(machine, setting.mesh, setting.precision);
  EXPECT_EQ(make_plan(graph, setting.mesh, {.machine = &setting}).status, Status::optimal);
}

} // namespace
} // namespace soybean::plan
