#include "models.hpp"
#include "program/program.hpp"
#include "support/golden.hpp"

#include <gtest/gtest.h>

namespace soybean::program {
namespace {

int count(const Program& p, Kind kind) {
  int n = 0;
  for (const Instruction& i : p.instructions) n += i.kind == kind;
  return n;
}

TEST(Lower, DataPlanOnTwoRanks) {
  const graph::Graph g = tiny_mlp();
  const plan::Plan plan = data_plan(g, {{2}});
  Program p = lower(g, plan, Mode::train);
  verify(g, plan, p);
  support::expect_golden("program_mlp_data.txt", to_string(g, p));
}

TEST(Lower, DataPlanInPlace) {
  const graph::Graph g = tiny_mlp();
  const plan::Plan plan = data_plan(g, {{2}});
  Program p = lower(g, plan, Mode::train);
  run_passes(g, p);
  verify(g, plan, p);
  support::expect_golden("program_mlp_data_in_place.txt", to_string(g, p));
}

/// The first layer splits its outputs, the second its inputs; weights and momentum are split alike.
plan::Plan split_plan(const graph::Graph& g) {
  plan::Plan plan;
  plan.mesh = {{2}};
  for (const graph::Node& n : g.nodes) {
    const std::string& layer = g.layers[n.layer].name;
    ops::Choice choice = ops::choose_replicated;
    if (layer == "fc1" && n.op.starts_with("dense")) choice = choice_of(g, n, "n");
    if (layer == "fc1" && (n.op == "bias" || n.op == "bias_grad")) choice = choice_of(g, n, "c");
    if (n.op == "relu") choice = 1;
    if (layer == "fc2" && n.op.starts_with("dense")) choice = choice_of(g, n, "k");
    if (n.phase == graph::Phase::update) choice = static_cast<ops::Choice>(n.name.starts_with("fc2") ? 1 : 0);
    if (n.twin != graph::none) choice = plan.choices[n.twin][0];
    plan.choices.push_back({choice});
  }
  complete(g, plan);
  for (std::size_t t = 0; t < g.tensors.size(); ++t) {
    const std::string& name = g.tensors[t].name;
    if (name.starts_with("fc1.weight") || name.starts_with("fc1.bias.")) plan.stored[t] = {tiling::split(0)};
    if (name.starts_with("fc2.weight")) plan.stored[t] = {tiling::split(1)};
  }
  for (std::size_t t = 0; t < g.tensors.size(); ++t) // as the gradients are produced or updates need them
    if (g.tensors[t].previous != graph::none) plan.stored[t] = plan.stored[g.tensors[t].previous];
  plan::evaluate(g, plan);
  return plan;
}

TEST(Lower, SplitPlanOnTwoRanks) {
  const graph::Graph g = tiny_mlp();
  const plan::Plan plan = split_plan(g);
  Program p = lower(g, plan, Mode::train);
  run_passes(g, p);
  verify(g, plan, p);
  support::expect_golden("program_mlp_split.txt", to_string(g, p));
}

TEST(Lower, EvaluationKeepsForwardOnly) {
  const graph::Graph g = tiny_mlp();
  const plan::Plan plan = data_plan(g, {{2, 2}});
  const Program train = lower(g, plan, Mode::train);
  const Program evaluate = lower(g, plan, Mode::evaluate);
  verify(g, plan, evaluate);
  EXPECT_FALSE(evaluate.training);
  for (const Instruction& i : evaluate.instructions)
    EXPECT_TRUE(i.kind != Kind::compute || g.nodes[i.node].phase == graph::Phase::forward);
  EXPECT_LT(count(evaluate, Kind::compute), count(train, Kind::compute));
  for (std::size_t b = 0; evaluate.buffers[b].life != Life::transient; ++b) // shared memory: the same list
    EXPECT_EQ(evaluate.buffers[b].name, train.buffers[b].name);
  EXPECT_EQ(evaluate.metrics.size(), g.metrics.size());
}

TEST(Lower, OneRankMovesNothing) {
  const graph::Graph g = tiny_cnn();
  const plan::Plan plan = data_plan(g, {});
  const Program p = lower(g, plan, Mode::train);
  verify(g, plan, p);
  EXPECT_EQ(count(p, Kind::start), 0);
  EXPECT_EQ(count(p, Kind::slice), 0);
  EXPECT_EQ(planned_bytes(g, p).data, 0);
}

TEST(Lower, DataBytesAreTwiceTheWeightsPerFurtherRank) {
  const graph::Graph g = tiny_cnn();
  for (int ranks : {2, 4, 8}) {
    plan::Plan plan = data_plan(g, tiling::make_mesh(std::vector<int>{ranks}));
    const Program p = lower(g, plan, Mode::train);
    EXPECT_EQ(planned_bytes(g, p).data, 2 * graph::parameter_count(g) * (ranks - 1) * 4);
    EXPECT_GT(planned_bytes(g, p).control, 0);
  }
}

TEST(Lower, CopiesAreMadeOncePerTiling) {
  const graph::Graph g = tiny_mlp();
  plan::Plan plan = data_plan(g, {{2}});
  const graph::TensorId w = graph::find_tensor(g, "fc2.weight"); // read forward, backward and by its update
  plan.stored[w] = {tiling::split(0)};
  plan.stored[g.tensors[w].next] = plan.stored[w];
  plan::evaluate(g, plan);
  const Program p = lower(g, plan, Mode::train);
  verify(g, plan, p);
  int copies = 0;
  for (const Instruction& i : p.instructions)
    copies += i.kind == Kind::start && p.buffers[i.inputs[0]].life == Life::persistent;
  EXPECT_EQ(copies, 1);
}

TEST(Lower, HashSeesTilingsAndOrder) {
  const graph::Graph g = tiny_mlp();
  const plan::Plan data = data_plan(g, {{2}}), split = split_plan(g);
  const Program p = lower(g, data, Mode::train);
  EXPECT_EQ(hash(g, p), hash(g, lower(g, data, Mode::train)));
  EXPECT_NE(hash(g, p), hash(g, lower(g, split, Mode::train)));
  EXPECT_NE(hash(g, p), hash(g, lower(g, data, Mode::evaluate)));
  Program other = p;
  std::swap(other.instructions[0], other.instructions[1]);
  EXPECT_NE(hash(g, p), hash(g, other));
}

} // namespace
} // namespace soybean::program
