#include "program/memory.hpp"

#include "base/error.hpp"
#include "base/philox.hpp"
#include "models.hpp"

#include <gtest/gtest.h>

namespace soybean::program {
namespace {

/// One graph tensor per buffer, written by one instruction and freed after a random while: `memory` looks at nothing
/// but lifetimes and sizes.
struct Lifetimes {
  graph::Graph graph;
  Program program;
  Workspaces workspaces;
};

Lifetimes random_lifetimes(std::uint64_t seed, int count) {
  Lifetimes r;
  std::uint64_t drawn = 0;
  const auto below = [&](std::uint64_t n) {
    return static_cast<std::int64_t>(philox::bits({seed, 1, 0}, drawn++) % n);
  };
  std::vector<std::pair<BufferId, std::int64_t>> alive; // dies at
  for (int i = 0; i < count; ++i) {
    const BufferId b = static_cast<BufferId>(r.program.buffers.size());
    r.graph.tensors.push_back({.name = "t" + std::to_string(b), .shape = {below(3) ? below(64) : below(5000)}});
    r.program.buffers.push_back({.name = r.graph.tensors.back().name, .tensor = b});
    r.program.instructions.push_back({.kind = Kind::compute, .outputs = {b}});
    alive.emplace_back(b, i + (below(4) ? below(5) : below(40)));
    Instruction free{.kind = Kind::free};
    std::erase_if(alive, [&](const auto& life) {
      if (life.second > i) return false;
      free.inputs.push_back(life.first);
      return true;
    });
    if (!free.inputs.empty()) r.program.instructions.push_back(free);
  }
  for (std::size_t i = 0; i < r.program.instructions.size(); ++i)
    r.workspaces.push_back(r.program.instructions[i].kind == Kind::compute && below(3) == 0 ? below(3000) : 0);
  return r;
}

/// Bytes alive at the fullest instruction: no placement can do with less.
std::int64_t lower_bound(const Lifetimes& r) {
  std::int64_t alive = 0, most = 0;
  const auto bytes = [&](BufferId b) { return (r.graph.tensors[b].shape[0] * 4 + 63) / 64 * 64; };
  for (std::size_t i = 0; i < r.program.instructions.size(); ++i) {
    const Instruction& instruction = r.program.instructions[i];
    for (BufferId b : instruction.outputs) alive += bytes(b);
    most = std::max(most, alive + (r.workspaces[i] + 63) / 64 * 64);
    if (instruction.kind == Kind::free)
      for (BufferId b : instruction.inputs) alive -= bytes(b);
  }
  return most;
}

TEST(Memory, RandomLifetimesNeverOverlapAndThePeakIsNearTheBound) {
  double ratios = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Lifetimes r = random_lifetimes(seed, 120);
    const Layout layout = assign_memory(r.graph, r.program, 0, r.workspaces); // verifies
    const std::int64_t bound = lower_bound(r);
    ASSERT_GE(layout.arena_bytes, bound);
    ASSERT_LE(static_cast<double>(layout.arena_bytes), 1.35 * static_cast<double>(bound)) << "seed " << seed;
    ratios += static_cast<double>(layout.arena_bytes) / static_cast<double>(bound);
  }
  EXPECT_LT(ratios / 200, 1.05);
}

TEST(Memory, OverlapIsCaught) {
  const Lifetimes r = random_lifetimes(3, 60);
  Layout layout = assign_memory(r.graph, r.program, 0, r.workspaces);
  int caught = 0, moved = 0;
  for (std::size_t b = 0; b < layout.offsets.size(); ++b) { // shift each buffer by a line in turn
    const std::int64_t offset = layout.offsets[b];
    if (r.graph.tensors[b].shape[0] == 0 || offset == 0) continue;
    layout.offsets[b] = offset - 64;
    ++moved;
    try {
      verify(r.graph, r.program, layout, r.workspaces);
    } catch (const Bug&) {
      ++caught;
    }
    layout.offsets[b] = offset;
  }
  EXPECT_GT(caught, moved / 3); // a gap below some of them is harmless
  layout.offsets.back() += 4;
  EXPECT_THROW(verify(r.graph, r.program, layout, r.workspaces), Bug); // not aligned
  layout = assign_memory(r.graph, r.program, 0, r.workspaces);
  layout.arena_bytes -= 64;
  EXPECT_THROW(verify(r.graph, r.program, layout, r.workspaces), Bug); // too small
}

TEST(Memory, TrainingAndEvaluationShareTheirFirstRegions) {
  const graph::Graph g = tiny_cnn();
  const plan::Plan plan = data_plan(g, {{2, 2}});
  Program train = lower(g, plan, Mode::train), evaluate = lower(g, plan, Mode::evaluate);
  run_passes(g, train);
  run_passes(g, evaluate);
  for (int rank = 0; rank < 4; ++rank) {
    const Layout a = assign_memory(g, train, rank, Workspaces(train.instructions.size(), 0));
    const Layout b = assign_memory(g, evaluate, rank, Workspaces(evaluate.instructions.size(), 0));
    EXPECT_EQ(a.persistent_bytes, b.persistent_bytes);
    EXPECT_GE(a.persistent_bytes, graph::parameter_count(g) * 4);
    EXPECT_GE(a.arena_bytes, b.arena_bytes);
    for (std::size_t i = 0; train.buffers[i].life != Life::transient; ++i) EXPECT_EQ(a.offsets[i], b.offsets[i]);
  }
}

TEST(Memory, AliasesShareTheirPlace) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {{2}}), Mode::train);
  run_passes(g, p);
  Workspaces workspaces(p.instructions.size(), 0);
  for (std::size_t i = 0; i < workspaces.size(); ++i)
    if (p.instructions[i].kind == Kind::start) workspaces[i] = 100; // kept to the wait
  const Layout layout = assign_memory(g, p, 1, workspaces);
  int aliases = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].alias >= 0) {
      ++aliases;
      EXPECT_EQ(layout.offsets[b], layout.offsets[p.buffers[b].alias]);
    }
  EXPECT_GT(aliases, 0);
  for (std::size_t i = 0; i < workspaces.size(); ++i) EXPECT_EQ(layout.workspace_offsets[i] >= 0, workspaces[i] > 0);
}

} // namespace
} // namespace soybean::program
