// What planning takes messages to need is what the runtime asks for.
#include "graph/graph.hpp"
#include "plan/planner.hpp"
#include "program/frees.hpp"
#include "program/program.hpp"
#include "program/staging.hpp"
#include "runtime/transfer.hpp"
#include "support/random_graph.hpp"

#include <gtest/gtest.h>

namespace soybean::runtime {
namespace {

device::TensorView view(const graph::Graph& graph, const program::Program& program, program::BufferId b, int rank) {
  const graph::Tensor& t = graph.tensors[program.buffers[b].tensor];
  const Box box = tiling::block(program.buffers[b].tiling, t.shape, program.mesh, rank);
  return {.data = nullptr,
          .dtype = t.dtype,
          .box = box,
          .global = t.shape,
          .spatial = device::block_spatial(box.extents, t.spatial)};
}

TEST(Staging, IsWhatTransfersTake) {
  std::int64_t all = 0, packed = 0, starts = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    for (const tiling::Mesh& mesh : {tiling::Mesh{{2}}, tiling::Mesh{{3}}, tiling::Mesh{{2, 2}}, tiling::Mesh{{3, 2}}})
      for (const char* strategy : {"auto", "model"}) {
        const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = strategy});
        program::Program p = program::lower(graph, plan, program::Mode::train);
        program::run_passes(graph, p);
        const std::vector<char> last_sends = program::last_sends(p);
        for (int rank = 0; rank < tiling::ranks(mesh); ++rank) {
          const program::Workspaces told = program::staging(graph, p, rank);
          for (std::size_t i = 0; i < p.instructions.size(); ++i) {
            const program::Instruction& instruction = p.instructions[i];
            if (instruction.kind != program::Kind::start) {
              ASSERT_EQ(told[i], 0);
              continue;
            }
            const Transfer t = prepare_transfer({.mesh = mesh,
                                                 .rank = rank,
                                                 .step = instruction.step,
                                                 .from = view(graph, p, instruction.inputs[0], rank),
                                                 .to = view(graph, p, instruction.outputs[0], rank),
                                                 .from_dies = last_sends[i] != 0},
                                                nullptr);
            ASSERT_EQ(told[i], t.staging_bytes)
                << seed << ' ' << strategy << ' ' << p.buffers[instruction.inputs[0]].name << " to "
                << p.buffers[instruction.outputs[0]].name;
            all += told[i];
            packed += told[i] > 0 ? 1 : 0;
            ++starts;
          }
        }
      }
  }
  EXPECT_GT(all, 0);
  EXPECT_GT(packed, 100);
  EXPECT_LT(packed, starts); // some go without
}

} // namespace
} // namespace soybean::runtime
