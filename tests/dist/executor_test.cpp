// The executor against itself on one rank: random graphs under random plans, in double, on as many ranks as there are.
// Every rank also runs the serial program; parameters, states and metrics must follow it, and the bytes that Comm
// counted must be the planned ones.
#include "base/error.hpp"
#include "comm/comm.hpp"
#include "program/program.hpp"
#include "runtime/agreement.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "support/graph_steps.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

constexpr int steps = 3;

class ExecutorCase : public ::testing::Test {
protected:
  std::unique_ptr<comm::Comm> comm_ = comm::make_comm("mpi");
  std::unique_ptr<comm::Comm> self_ = comm::make_self_comm();
  device::Exec exec_{1};

  void compare_metrics(Executor& parallel, const Executor& serial, int program, const std::string& what) {
    const std::vector<double> got = parallel.metrics(program), expected = serial.metrics(program);
    parallel.queue_metrics(program);
    EXPECT_EQ(parallel.take_metrics(), got) << what;
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << what << ", metric " << i;
  }

  void compare_bytes(const graph::Graph& g, const plan::Plan& plan, const Executor& parallel, const std::string& what) {
    const program::PlannedBytes planned = program::planned_bytes(g, parallel.program(0));
    const Totals& last = parallel.profile(0).last;
    EXPECT_EQ(comm::sum(*comm_, last.data_bytes), planned.data) << what;
    EXPECT_EQ(comm::sum(*comm_, last.control_bytes), planned.control) << what;
    EXPECT_EQ(planned.data, plan.bytes) << what;
    std::int64_t by_instruction = 0;
    for (const Work& work : parallel.profile(0).instructions) by_instruction += work.received_bytes;
    const Totals& sum = parallel.profile(0).sum;
    EXPECT_EQ(by_instruction, sum.data_bytes + sum.control_bytes) << what;
  }

  void run_case(std::uint64_t seed) {
    const int ranks = comm_->size();
    const graph::Graph g = support::random_graph(seed);
    const plan::Plan plan = support::random_plan(g, support::random_mesh(seed, ranks), seed);
    plan::verify(g, plan);
    const plan::Plan alone = support::serial_plan(g);
    const std::string what = fmt::format("seed {} on {} ranks, mesh {}", seed, ranks, tiling::to_string(plan.mesh));
    const std::vector<std::string> skip =
        seed % 4 == 0 ? std::vector<std::string>{"in_place"} : std::vector<std::string>{};
    Executor parallel(g, support::programs_of(g, plan, skip), {exec_, *comm_, plan.mesh, comm_->rank()});
    Executor serial(g, support::programs_of(g, alone), {exec_, *self_, alone.mesh, 0});
    agree(g, plan, {parallel.program(0), parallel.program(1)}, *comm_);
    for (const Executor* executor : {&parallel, &serial}) initialise_parameters(g, *executor, seed);
    for (const Block& block : parallel.persistent()) // bit-identical beginnings
      EXPECT_EQ(support::values_of(parallel, block.view, block.view.box),
                support::values_of(serial, serial.persistent(block.tensor).view, block.view.box))
          << what;
    for (int step = 0; step < steps; ++step) {
      for (Executor* executor : {&parallel, &serial}) {
        support::feed(g, *executor, step);
        executor->run(0);
      }
      compare_metrics(parallel, serial, 0, what);
      compare_bytes(g, plan, parallel, what);
    }
    support::expect_same_state(parallel, serial, {1e-9}, what);
    for (Executor* executor : {&parallel, &serial}) {
      support::feed(g, *executor, steps);
      executor->run(1);
    }
    compare_metrics(parallel, serial, 1, what + ", evaluation");
    support::expect_same_state(parallel, serial, {1e-9}, what + ", after evaluation"); // nothing has changed
  }
};

TEST_F(ExecutorCase, RandomGraphsUnderRandomPlansFollowTheSerialRun) {
  const char* more = std::getenv("SOYBEAN_RANDOM_CASES"); // for the long matrices
  const int cases = more != nullptr ? std::atoi(more) : comm_->size() == 1 ? 20 : 45;
  ASSERT_GT(cases, 0);
  for (int c = 0; c < cases; ++c) {
    run_case(1000 * static_cast<std::uint64_t>(comm_->size()) + static_cast<std::uint64_t>(c));
    if (comm::max(*comm_, HasFailure() ? 1.0 : 0.0) > 0) return; // one bad case is enough to read
  }
}

TEST_F(ExecutorCase, PeakIsWhatIsAllocated) {
  const graph::Graph g = support::random_graph(5);
  const plan::Plan plan = support::random_plan(g, support::random_mesh(5, comm_->size()), 5);
  const Context context{exec_, *comm_, plan.mesh, comm_->rank()};
  const Executor executor(g, support::programs_of(g, plan), context);
  EXPECT_EQ(executor.memory_bytes(), memory_bytes(g, support::programs_of(g, plan), context));
  EXPECT_EQ(executor.memory_bytes(), std::max(executor.layout(0).arena_bytes, executor.layout(1).arena_bytes));
  EXPECT_GT(executor.memory_bytes(), 0);
}

TEST_F(ExecutorCase, RanksThatDisagreeAreNamed) {
  const std::uint64_t hash = comm_->rank() == comm_->size() - 1 ? 7 : 5;
  if (comm_->size() == 1) {
    EXPECT_NO_THROW(check_agreement(*comm_, {{"plan", hash}}));
    return;
  }
  try {
    check_agreement(*comm_, {{"model", 3}, {"plan", hash}});
    FAIL() << "not noticed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::failed);
    EXPECT_EQ(
        std::string(e.what()),
        fmt::format("agreement of ranks: the plan differs, got 0000000000000007 on rank {} expected "
                    "0000000000000005 as on rank 0. Start all ranks with the same program, model file and options",
                    comm_->size() - 1));
  }
}

} // namespace
} // namespace soybean::runtime
