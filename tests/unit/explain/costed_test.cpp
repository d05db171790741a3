// What follows from a plan: bottlenecks, the course of memory, moves between layers.
#include "explain/costed.hpp"

#include "explain/memory.hpp"
#include "explain/moves.hpp"
#include "plan/words.hpp"
#include "support/random_graph.hpp"
#include "unit/explain/networks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace soybean::explain {
namespace {

const tiling::Mesh mesh{{2, 2}};

TEST(Bottleneck, IsTheLayerThatMovesMostWithoutAMachine) {
  graph::Graph graph = mlp(8, 32);
  const Costed data = cost_of({graph, 8}, mesh, "data");
  EXPECT_EQ(bottleneck({graph, 8}, data), "fc1 50 %"); // both layers' weights, the first of equal ones
  EXPECT_EQ(bottleneck({graph, 8}, cost_of({graph, 8}, {})), "-") << "one rank moves nothing";
}

TEST(Bottleneck, IsALinkWhereTransfersTakeLongest) {
  const graph::Graph graph = mlp(8, 256);
  machine::Setting setting = setting_of(mesh);
  const Subject subject{graph, 8, &setting};
  EXPECT_EQ(bottleneck(subject, cost_of(subject, mesh, "data")).substr(0, 4), "fc2 ");
  for (auto& from_cut : setting.rings)
    for (machine::Setting::Ring& ring : from_cut) ring.seconds_per_byte *= 100; // of slow links
  const std::string slow = bottleneck(subject, cost_of(subject, mesh, "data"));
  EXPECT_EQ(slow.substr(0, 16), "waiting for host") << slow;
}

TEST(LevelCrossed, IsTheOutermostOne) {
  const machine::Setting setting = setting_of(mesh); // boards of two ranks in one host
  const auto all_reduce = [](int cut) { return tiling::Step{.kind = tiling::StepKind::all_reduce, .cut = cut}; };
  EXPECT_EQ(setting.machine.links[level_crossed(setting, all_reduce(0))].name, "host");
  EXPECT_EQ(setting.machine.links[level_crossed(setting, all_reduce(1))].name, "board");
  const tiling::Tiling rows{tiling::replicate(), tiling::split(0)}, columns{tiling::replicate(), tiling::split(1)};
  const tiling::Step inner{.kind = tiling::StepKind::exchange, .from = rows, .to = columns};
  EXPECT_EQ(setting.machine.links[level_crossed(setting, inner)].name, "board");
  const tiling::Step outer{.kind = tiling::StepKind::exchange, .from = {rows[1], rows[1]}, .to = columns};
  EXPECT_EQ(setting.machine.links[level_crossed(setting, outer)].name, "host");
}

/// Every byte of a plan is in some move, and those of a move are those of its collectives.
TEST(Moves, AddUpToThePlansBytes) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    for (const std::string strategy : {"auto", "data", "model"}) {
      const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = strategy});
      std::int64_t sum = 0;
      for (const Move& move : all_moves(graph, plan)) {
        sum += move.bytes;
        EXPECT_NE(collectives(graph, plan, move), "");
        EXPECT_NE(move.node, graph::none);
        EXPECT_NE(move.from_layer, graph::none);
      }
      EXPECT_EQ(sum, plan.bytes) << seed << ' ' << strategy;
    }
  }
}

TEST(Moves, OfDataParallelismReduceGradients) {
  const graph::Graph graph = mlp(8, 32);
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  for (const Move& move : all_moves(graph, plan)) {
    EXPECT_TRUE(move.stores);
    EXPECT_TRUE(graph.tensors[move.tensor].name.ends_with(".grad"));
    EXPECT_EQ(move.from_layer, move.to_layer);
    EXPECT_EQ(plan::tiling_words(move.from, mesh), "partial/4");
    EXPECT_EQ(plan::tiling_words(move.to, mesh), "replicate/4");
  }
}

/// What is held never exceeds what is allocated, is everything persistent at least, and is at its most at the peak.
TEST(Memory, CourseLiesBetweenWhatIsKeptAndWhatIsAllocated) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    const Costed costed = cost_of({graph, 1}, mesh);
    const MemoryCourse course = memory_course(graph, costed);
    ASSERT_EQ(course.bytes.size(), costed.program.instructions.size());
    const std::int64_t peak = total(course.bytes[course.peak]);
    EXPECT_LE(peak, costed.peak_memory());
    std::int64_t kept = 0; // of weights
    for (std::size_t b = 0; b < costed.program.buffers.size(); ++b) {
      const program::Buffer& buffer = costed.program.buffers[b];
      const graph::Tensor& tensor = graph.tensors[buffer.tensor];
      if (buffer.life == program::Life::persistent && tensor.role == graph::Role::parameter)
        kept += volume(costed.layout.boxes[b]) * size_of(tensor.dtype);
    }
    for (const HeldBytes& now : course.bytes) {
      EXPECT_LE(total(now), peak);
      EXPECT_GE(now[0], kept) << "weights stay, gathered copies come and go";
      for (const std::int64_t bytes : now) EXPECT_GE(bytes, 0);
    }
    std::int64_t listed = 0;
    for (const HeldBuffer& buffer : course.at_peak) listed += buffer.bytes;
    EXPECT_EQ(listed, peak);
    EXPECT_TRUE(std::is_sorted(course.at_peak.begin(), course.at_peak.end(),
                               [](const HeldBuffer& a, const HeldBuffer& b) { return a.bytes > b.bytes; }));
  }
}

TEST(Memory, WhatIsComputedAgainIsNoGradient) {
  const auto most_gradients = [](graph::Recompute recompute) {
    graph::Graph g{.name = "again", .recompute = recompute};
    graph::TensorId x = ops::input_source(g, 64, {8});
    for (const char* name : {"a", "b", "c"}) {
      x = ops::dense_layer(g, name, x, {.units = 8, .bias = false});
      for (const char* op : {"tanh", "sigmoid", "gelu"}) x = ops::pointwise_layer(g, std::string(name) + op, op, x);
    }
    ops::loss_layer(g, x);
    ops::add_backward_and_update(g, {});
    std::int64_t most = 0;
    for (const HeldBytes& now : memory_course(g, cost_of({g, 64}, {})).bytes)
      most = std::max(most, now[static_cast<std::size_t>(Held::gradients)]);
    return most;
  };
  EXPECT_EQ(most_gradients(graph::Recompute::segments), most_gradients(graph::Recompute::none));
}

TEST(Memory, WeightsAndMomentumAreCounted) {
  const graph::Graph graph = mlp(8, 32);
  const Costed costed = cost_of({graph, 8}, {});
  const MemoryCourse course = memory_course(graph, costed);
  EXPECT_EQ(course.bytes[0][static_cast<std::size_t>(Held::weights)], 2 * (32 * 32 + 32) * 4);
  EXPECT_EQ(course.bytes[0][static_cast<std::size_t>(Held::state)], 2 * (32 * 32 + 32) * 4);
}

} // namespace
} // namespace soybean::explain
