// The paper's networks at their full sizes: bytes of a step against exact optima of an independent search over the same
// space, and against the closed form of data parallelism.
#include "plan/planner.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>

namespace soybean {
namespace {

plan::Plan plan_for(const graph::Graph& graph, int ranks, const std::string& strategy) {
  plan::Plan plan = plan::make_plan(graph, tiling::make_mesh(std::vector<int>{ranks}), {.strategy = strategy});
  plan::verify(graph, plan);
  return plan;
}

/// All ranks exchange every gradient once: reduce and gather, 2 (P - 1) |W|.
std::int64_t data_bytes(const graph::Graph& graph, int ranks) {
  return std::int64_t{2} * (ranks - 1) * graph::parameter_count(graph) * size_of(graph.precision);
}

struct Case {
  const char* name;
  graph::Graph (*make)();
  int ranks;
  double optimal, data; ///< MB
};

class Networks : public testing::TestWithParam<Case> {};

TEST_P(Networks, move_no_more_than_the_optimum) {
  const graph::Graph graph = GetParam().make();
  const plan::Plan best = plan_for(graph, GetParam().ranks, "auto");
  EXPECT_LE(static_cast<double>(best.bytes) / 1e6, GetParam().optimal + 0.005);
  EXPECT_EQ(best.status, plan::Status::optimal);
  EXPECT_EQ(best.gap, 0);
}

TEST_P(Networks, data_moves_every_gradient_once) {
  const graph::Graph graph = GetParam().make();
  const plan::Plan data = plan_for(graph, GetParam().ranks, "data");
  EXPECT_EQ(data.bytes, data_bytes(graph, GetParam().ranks));
  EXPECT_NEAR(static_cast<double>(data.bytes) / 1e6, GetParam().data, 0.005);
}

TEST_P(Networks, no_strategy_beats_auto) {
  const graph::Graph graph = GetParam().make();
  const plan::Plan best = plan_for(graph, GetParam().ranks, "auto");
  for (const std::string& strategy : plan::strategies())
    EXPECT_GE(plan_for(graph, GetParam().ranks, strategy).bytes, best.bytes) << strategy;
}

INSTANTIATE_TEST_SUITE_P(Paper, Networks,
                         testing::Values(Case{"alexnet_2", [] { return test::alexnet(256); }, 2, 48.01, 488.72},
                                         Case{"alexnet_4", [] { return test::alexnet(256); }, 4, 121.23, 1466.17},
                                         Case{"alexnet_8", [] { return test::alexnet(256); }, 8, 244.55, 3421.07},
                                         Case{"vgg16_8", [] { return test::vgg16(64); }, 8, 789.33, 7747.27},
                                         Case{"mlp_8",
                                              [] {
                                                return test::mlp(512, {8192, 8192, 8192, 8192, 8192});
                                              },
                                              8, 402.76, 15032.39}),
                         [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(Networks, cut_by_cut_on_alexnet_is_close_to_the_optimum) {
  const graph::Graph graph = test::alexnet(256);
  const double bytes = static_cast<double>(plan_for(graph, 8, "kcut").bytes) / 1e6;
  EXPECT_GE(bytes, 245.5);
  EXPECT_LE(bytes, 258.1);
}

} // namespace
} // namespace soybean
