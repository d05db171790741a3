// What the executor asks of an accelerator's libraries in a steady state, by their stand-ins.
#include "base/error.hpp"
#include "comm/layered.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "standins/standins.hpp"
#include "support/graph_steps.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"

#include <gtest/gtest.h>

namespace soybean::runtime {
namespace {

class SteadyState : public ::testing::Test {
protected:
  void SetUp() override { standins::reset(); }
  void TearDown() override { EXPECT_EQ(standins::faults(), std::vector<std::string>()); }

  Executor make(bool record_steps = true) const {
    return {graph_, support::programs_of(graph_, plan_), {exec_, *comm_, plan_.mesh, 0, record_steps}};
  }
  void step(Executor& executor, int number) const {
    support::feed(graph_, executor, number);
    executor.run(0);
  }

  device::Exec exec_{1, 0};
  std::unique_ptr<comm::Comm> comm_ = comm::make_self_comm();
  graph::Graph graph_ = support::random_graph(3, {.precision = DType::f32});
  plan::Plan plan_ = support::serial_plan(graph_);
};

TEST_F(SteadyState, AStepWaitsForNothingAndAllocatesNothing) {
  Executor executor = make();
  initialise_parameters(graph_, executor, 3);
  step(executor, 0);
  EXPECT_GT(standins::counts().heuristics, 0); // it went through the vendor layer
  const standins::Counts before = standins::counts();
  step(executor, 2);
  step(executor, 3);
  EXPECT_EQ(standins::counts().host_waits, before.host_waits);
  EXPECT_EQ(standins::counts().allocations, before.allocations);
  EXPECT_EQ(standins::counts().heuristics, before.heuristics);
}

/// Calls of the accelerator's libraries in one run of the training program.
std::vector<std::string> calls_of(Executor& executor) {
  const std::size_t before = standins::calls().size();
  executor.run(0);
  return {standins::calls().begin() + static_cast<std::ptrdiff_t>(before), standins::calls().end()};
}

// Kernels do not go through the stand-ins, so numbers are compared on accelerators alone (executor_test.cpp).
TEST_F(SteadyState, AStepIsRecordedOnceAndThenLaunchedAsAWhole) {
  standins::set_recording(true);
  Executor executor = make();
  initialise_parameters(graph_, executor, 3);
  const std::vector<std::string> first = calls_of(executor), second = calls_of(executor);
  EXPECT_EQ(standins::counts().recorded, 0);
  EXPECT_GT(second.size(), 3U);
  calls_of(executor);
  const std::int64_t recorded = standins::counts().recorded;
  EXPECT_GT(recorded, 0);
  EXPECT_EQ(standins::counts().launches, 1);
  EXPECT_EQ(executor.profile(0).steps, 3);
  const std::vector<std::string> fourth = calls_of(executor);
  EXPECT_EQ(fourth, (std::vector<std::string>{"cudaSetDevice", "cudaGraphLaunch"}));
  EXPECT_EQ(standins::counts().recorded, recorded);
  EXPECT_EQ(standins::counts().launches, 2);
  EXPECT_EQ(executor.profile(0).steps, 4);
}

TEST_F(SteadyState, RecordingsCanBeTurnedOff) {
  standins::set_recording(true);
  Executor executor = make(false);
  initialise_parameters(graph_, executor, 3);
  for (int run = 0; run < 4; ++run) executor.run(0);
  EXPECT_EQ(standins::counts().recorded, 0);
  EXPECT_EQ(standins::counts().launches, 0);
}

/// One rank's, which notes how it is waited for and when it is given up.
class Watched final : public comm::LayeredComm {
public:
  Watched() : LayeredComm(comm::make_self_comm()) {}
  comm::Token start(const comm::Collective& c, const device::Exec& exec) override { return below().start(c, exec); }
  void wait(comm::Token token) override { below().wait(token); }
  bool done(comm::Token) const override { return true; }
  bool poll() override { return false; }
  comm::Counters counters() const override { return {}; }
  void fence(const device::Event&) override { ++fences; }
  void abort() noexcept override { in_use_at_abort = standins::allocated_bytes(); }

  int fences = 0;
  std::int64_t in_use_at_abort = -1;
};

TEST_F(SteadyState, MetricsAreWaitedForUnderTheWatchdog) {
  Watched comm;
  Executor executor(graph_, support::programs_of(graph_, plan_), {exec_, comm, plan_.mesh, 0});
  initialise_parameters(graph_, executor, 3);
  step(executor, 0);
  const std::int64_t before = standins::counts().host_waits;
  executor.metrics(0);
  EXPECT_EQ(comm.fences, 1);
  executor.queue_metrics(0);
  executor.take_metrics();
  EXPECT_EQ(comm.fences, 2);
  EXPECT_EQ(standins::counts().host_waits, before);
}

TEST_F(SteadyState, AnErrorGivesUpCollectivesBeforeMemoryIsReleased) {
  Watched comm;
  std::int64_t taken = 0;
  try {
    const Executor executor(graph_, support::programs_of(graph_, plan_), {exec_, comm, plan_.mesh, 0});
    taken = standins::allocated_bytes();
    fail("an error of another layer");
  } catch (const Error&) {
    EXPECT_EQ(comm.in_use_at_abort, taken);
  }
  comm.in_use_at_abort = -1;
  { const Executor executor(graph_, support::programs_of(graph_, plan_), {exec_, comm, plan_.mesh, 0}); }
  EXPECT_EQ(comm.in_use_at_abort, -1); // a run that comes to its end
}

TEST_F(SteadyState, AStepThatCanNotBeRecordedEndsTheRun) {
  standins::set_recording(true);
  Executor executor = make();
  initialise_parameters(graph_, executor, 3);
  executor.run(0);
  executor.run(0);
  standins::fail_call(4); // after cudaSetDevice, cudaStreamBeginCapture and the first call of the step
  try {
    executor.run(0);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_TRUE(text.starts_with("executor: recording a step failed, ")) << text;
    EXPECT_TRUE(text.ends_with("run.record_steps = false runs without recordings")) << text;
  }
}

} // namespace
} // namespace soybean::runtime
