// What an executor is predicted to take of an accelerator's memory is what it takes, counted by the stand-ins: with any
// plan, back end and number of emulated hosts, and whatever the host writes and reads afterwards.
#include "comm/comm.hpp"
#include "cuda/accelerator.hpp"
#include "device/pack.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "standins/standins.hpp"
#include "support/graph_steps.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

class Allocations : public ::testing::Test {
protected:
  void SetUp() override { test::begin_accelerated(); }
  void TearDown() override { test::end_accelerated(); }

  /// Trains, evaluates and reads all that is kept, and compares.
  void run_case(std::uint64_t seed, comm::Comm& comm) {
    const device::Exec exec(1, 0);
    const graph::Graph graph = support::random_graph(seed, {.precision = DType::f32});
    const plan::Plan plan = support::random_plan(graph, support::random_mesh(seed, comm.size()), seed);
    const Context context{exec, comm, plan.mesh, comm.rank()};
    const std::vector<program::Program> programs = support::programs_of(graph, plan);
    const std::int64_t before = standins::allocated_bytes(), predicted = memory_bytes(graph, programs, context);
    EXPECT_EQ(standins::allocated_bytes(), before);
    Executor executor(graph, programs, context);
    EXPECT_EQ(standins::allocated_bytes() - before, predicted);
    EXPECT_EQ(executor.memory_bytes(), predicted);
    initialise_parameters(graph, executor, seed);
    for (int step = 0; step < 4; ++step) {
      support::feed(graph, executor, step);
      executor.run(step % 2);
      executor.metrics(step % 2);
    }
    for (const Block& block : executor.persistent()) support::values_of(executor, block.view, block.view.box);
    EXPECT_EQ(standins::allocated_bytes() - before, predicted);
    most_scratch_ = std::max(most_scratch_, predicted - executor.layout(0).arena_bytes);
  }

  std::int64_t most_scratch_ = 0;
};

TEST_F(Allocations, AreThePredictedOnes) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const char* name : {"mpi", "hierarchical"})
    for (int hosts = 1; hosts <= size; ++hosts) {
      comm::Place place{.device = 0};
      for (int r = 0; r < size; ++r) place.hosts.push_back(fmt::format("host{}", r % hosts));
      const std::unique_ptr<comm::Comm> comm = comm::make_comm(name, place);
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        SCOPED_TRACE(fmt::format("{} on {} ranks of {} hosts, seed {}", name, size, hosts, seed));
        run_case(seed, *comm);
      }
    }
  EXPECT_GT(most_scratch_, 0);
}

} // namespace
} // namespace soybean::runtime
