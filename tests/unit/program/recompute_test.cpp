// Recomputation is not undone by planning, lowering and passes: peaks fall.
#include "ops/arithmetic_layers.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/losses.hpp"
#include "ops/norm_layers.hpp"
#include "plan/planner.hpp"
#include "program/memory.hpp"
#include "support/random_graph.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace soybean::program {
namespace {

using graph::Graph;
using graph::Recompute;
using graph::TensorId;

/// Residual blocks of two convolutions with batch norm on images that are far larger than the weights.
Graph blocks(Recompute recompute, int count = 8) {
  Graph g{.name = "blocks", .recompute = recompute};
  TensorId x = ops::conv2d_layer(g, "stem", ops::input_source(g, 8, {2, 16, 16}),
                                 {.channels = 8, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  for (int i = 0; i < count; ++i) {
    TensorId y = x;
    for (const char* part : {"a", "b"}) {
      const std::string name = fmt::format("{}{}", part, i);
      y = ops::conv2d_layer(g, name, y, {.channels = 8, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
      y = ops::batch_norm_layer(g, name + ".bn", y, {});
      if (part[0] == 'a') y = ops::pointwise_layer(g, name + ".relu", "relu", y);
    }
    x = ops::pointwise_layer(g, fmt::format("relu{}", i), "relu", ops::add_layer(g, fmt::format("add{}", i), {x, y}));
  }
  ops::loss_layer(g, ops::dense_layer(g, "fc", ops::flatten_layer(g, "flat", ops::global_avg_pool_layer(g, "gap", x)),
                                      {.units = 4}));
  ops::add_backward_and_update(g, {});
  return g;
}

std::int64_t peak(const Graph& graph, const tiling::Mesh& mesh) {
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  Program program = lower(graph, plan, Mode::train);
  run_passes(graph, program);
  verify(graph, plan, program);
  return peak_bytes(graph, plan);
}

TEST(Recompute, PeaksFall) {
  for (const tiling::Mesh& mesh : {tiling::Mesh{}, tiling::Mesh{{2, 2}}}) {
    const auto none = static_cast<double>(peak(blocks(Recompute::none), mesh));
    EXPECT_LT(static_cast<double>(peak(blocks(Recompute::cheap), mesh)), 0.75 * none);
    EXPECT_LT(static_cast<double>(peak(blocks(Recompute::segments), mesh)), 0.5 * none);
  }
}

/// Statistics of batch norms are sums over ranks: while one is under way, what is to be computed again waits.
TEST(Recompute, IsNotUndoneByOverlap) {
  const Graph graph = blocks(Recompute::segments);
  const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2, 2}}, {.strategy = "data"});
  const auto arena = [&](const std::vector<std::string>& skip) {
    Program program = lower(graph, plan, Mode::train);
    run_passes(graph, program, skip);
    return static_cast<double>(
        assign_memory(graph, program, 0, Workspaces(program.instructions.size(), 0)).arena_bytes);
  };
  EXPECT_LE(arena({}), 1.05 * arena({"overlap"}));
}

TEST(Recompute, SegmentsTakeTheSquareRoot) {
  const tiling::Mesh serial;
  const auto growth = [&](Recompute recompute) {
    return static_cast<double>(peak(blocks(recompute, 32), serial)) /
           static_cast<double>(peak(blocks(recompute, 8), serial));
  };
  EXPECT_GT(growth(Recompute::none), 3.0);
  EXPECT_LT(growth(Recompute::segments), 2.4);
}

TEST(Recompute, ClonesCostWhatTheirForwardNodesDo) {
  const Graph none = blocks(Recompute::none), segments = blocks(Recompute::segments);
  const double forward = ops::flops(none, graph::Phase::forward);
  const double more = ops::flops(segments, graph::Phase::backward) - ops::flops(none, graph::Phase::backward);
  EXPECT_GT(more, 0.5 * forward);
  EXPECT_LT(more, forward);
}

} // namespace
} // namespace soybean::program
