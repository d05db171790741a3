// What the pass moves, and what it leaves where it is. That results do not change is checked by `verify` after it and
// by the runs of tests/dist and tests/e2e, all of which have it.
#include "base/error.hpp"
#include "models.hpp"
#include "plan/planner.hpp"
#include "program/memory.hpp"
#include "program/overlap.hpp"
#include "support/random_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace soybean::program {
namespace {

/// Computations that run while the transfer of a buffer is under way.
std::map<std::string, std::vector<std::string>> beside(const graph::Graph& g, const Program& p) {
  std::map<std::int32_t, std::string> under_way;
  std::map<std::string, std::vector<std::string>> result;
  for (const Instruction& i : p.instructions) {
    if (i.kind == Kind::start) under_way[i.token] = g.tensors[p.buffers[i.inputs[0]].tensor].name;
    if (i.kind == Kind::wait) under_way.erase(i.token);
    if (i.kind == Kind::compute)
      for (const auto& [token, name] : under_way) result[name].push_back(g.nodes[i.node].name);
  }
  return result;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Overlap, GradientsAreSummedWhileEarlierLayersGoBackward) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {{2}}), Mode::train);
  EXPECT_TRUE(beside(g, p).empty());
  overlap(g, p);
  auto during = beside(g, p);
  EXPECT_TRUE(contains(during["fc.weight.grad"], "conv.weight.grad"));
  EXPECT_TRUE(contains(during["loss"], "conv.weight.grad"));
  EXPECT_FALSE(contains(during["fc.weight.grad"], "fc.weight"));        // the update
  EXPECT_FALSE(contains(during["conv.weight.grad"], "fc.weight.grad")); // which was computed before
}

TEST(Overlap, UpdatesRunWhileLaterGradientsAreSummed) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {{2}}), Mode::train);
  overlap(g, p);
  const auto position = [&](Kind kind, const std::string& name) {
    for (std::size_t i = 0; i < p.instructions.size(); ++i) {
      const Instruction& instruction = p.instructions[i];
      if (instruction.kind == kind && g.nodes[instruction.node].name == name) return i;
    }
    throw Bug("no such instruction");
  };
  EXPECT_LT(position(Kind::compute, "fc.weight"), position(Kind::wait, "conv.weight.grad"));
  EXPECT_GT(position(Kind::compute, "fc.weight"), position(Kind::start, "conv.weight.grad"));
}

TEST(Overlap, LeavesProgramsThatSendNothing) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {}), Mode::train);
  const std::string before = to_string(g, p);
  overlap(g, p);
  EXPECT_EQ(to_string(g, p), before);
}

TEST(Overlap, KeepsProgramsValidAndTheirBytes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const graph::Graph g = support::random_graph(seed);
    for (const tiling::Mesh& mesh : {tiling::Mesh{{2}}, tiling::Mesh{{3}}, tiling::Mesh{{2, 2}}}) {
      const plan::Plan plan = plan::make_plan(g, mesh, {});
      Program p = lower(g, plan, Mode::train);
      const std::size_t instructions = p.instructions.size();
      const auto starts = std::count_if(p.instructions.begin(), p.instructions.end(),
                                        [](const Instruction& i) { return i.kind == Kind::start; });
      overlap(g, p);
      EXPECT_NO_THROW(verify(g, plan, p)) << seed;
      EXPECT_EQ(starts, std::count_if(p.instructions.begin(), p.instructions.end(),
                                      [](const Instruction& i) { return i.kind == Kind::start; }));
      EXPECT_LE(p.instructions.size(), 2 * instructions);
    }
  }
}

/// A chain on ranks that split its features: each layer waits for the one before, and its weights have to be fetched.
TEST(Overlap, LittleIsFetchedAhead) {
  graph::Graph g;
  g.name = "chain";
  graph::TensorId x = ops::input_source(g, 64, {8});
  for (int i = 0; i < 60; ++i) x = ops::dense_layer(g, "fc" + std::to_string(i), x, {.units = 64, .bias = false});
  ops::loss_layer(g, x);
  ops::add_backward_and_update(g, {});
  plan::Plan plan = data_plan(g, {{2}});
  for (std::size_t t = 0; t < g.tensors.size(); ++t) // stored in halves, needed whole
    if (g.tensors[t].role == graph::Role::parameter && g.tensors[t].producer == graph::none)
      plan.stored[t] = {tiling::split(0)};
  const auto copies = [&](const Program& p) { // of weights, alive at a time
    std::int64_t alive = 0, most = 0;
    for (const Instruction& i : p.instructions) {
      const auto count = [&](const std::vector<BufferId>& buffers) {
        return std::count_if(buffers.begin(), buffers.end(), [&](BufferId b) {
          return p.buffers[b].life == Life::transient && g.tensors[p.buffers[b].tensor].role == graph::Role::parameter;
        });
      };
      if (i.kind == Kind::start) alive += count(i.outputs);
      if (i.kind == Kind::free) alive -= count(i.inputs);
      most = std::max(most, alive);
    }
    return most;
  };
  Program forward = lower(g, plan, Mode::evaluate); // at whose peak one copy is alive
  ASSERT_EQ(copies(forward), 1);
  overlap(g, forward);
  EXPECT_LE(copies(forward), 2);              // beside activations that are no longer there
  Program step = lower(g, plan, Mode::train); // whose peak comes later
  EXPECT_FALSE(contains(beside(g, step)["fc5.weight"], "fc4"));
  overlap(g, step);
  EXPECT_TRUE(contains(beside(g, step)["fc5.weight"], "fc4"));
  EXPECT_FALSE(contains(beside(g, step)["fc40.weight"], "fc10"));
}

} // namespace
} // namespace soybean::program
