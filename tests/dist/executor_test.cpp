// The executor against itself on one rank: random graphs under random plans, in double, on as many ranks as there are.
// Every rank also runs the serial program; parameters, states and metrics must follow it, and the bytes that Comm
// counted must be the planned ones.
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "comm/comm.hpp"
#include "device/pack.hpp"
#include "program/program.hpp"
#include "runtime/agreement.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
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

using graph::Role;

constexpr int steps = 3;

/// Both programs of a run, passes done except those in `skip`.
std::vector<program::Program> programs_of(const graph::Graph& g, const plan::Plan& plan,
                                          const std::vector<std::string>& skip = {}) {
  std::vector<program::Program> programs;
  for (const program::Mode mode : {program::Mode::train, program::Mode::evaluate}) {
    programs.push_back(program::lower(g, plan, mode));
    program::run_passes(g, programs.back(), skip);
    program::verify(g, plan, programs.back());
  }
  return programs;
}

/// What the host feeds for one element of a source in one step.
double fed_value(const graph::Graph& g, const graph::Tensor& t, std::int64_t step, std::int64_t index) {
  const philox::Stream stream{17, hash_text(t.name), static_cast<std::uint64_t>(step)};
  const auto i = static_cast<std::uint64_t>(index);
  switch (t.role) {
  case Role::input:
    return 2 * philox::uniform(stream, i) - 1;
  case Role::label:
    return std::floor(philox::uniform(stream, i) * static_cast<double>(g.tensors[g.logits].shape[1]));
  case Role::sample_weight: // some rows are padding
    return philox::uniform(stream, i) < 0.2 ? 0.0 : 1.0 / static_cast<double>(t.shape[0]);
  default:
    return index == 0 ? 0.05 : static_cast<double>(step);
  }
}

template<class T>
void feed_block(const Context& context, const graph::Graph& g, const Block& block, std::int64_t step) {
  const Box& box = block.view.box;
  std::vector<T> values;
  for (std::int64_t k = 0; k < volume(box); ++k) {
    std::int64_t index = 0, stride = 1, rest = k;
    for (std::size_t d = box.extents.size(); d-- > 0;) {
      index += (box.offsets[d] + rest % box.extents[d]) * stride;
      rest /= box.extents[d];
      stride *= block.view.global[d];
    }
    values.push_back(static_cast<T>(fed_value(g, g.tensors[block.tensor], step, index)));
  }
  if (!values.empty()) device::unpack(context.exec, values.data(), block.view, box, device::Order::logical);
}

void feed(const graph::Graph& g, const Executor& executor, std::int64_t step) {
  for (const Block& block : executor.fed()) {
    if (block.view.dtype == DType::f64)
      feed_block<double>(executor.context(), g, block, step);
    else if (block.view.dtype == DType::f32)
      feed_block<float>(executor.context(), g, block, step);
    else
      feed_block<std::int32_t>(executor.context(), g, block, step);
  }
}

std::vector<double> values_of(const Executor& executor, const device::TensorView& view, const Box& box) {
  std::vector<double> values(static_cast<std::size_t>(volume(box)));
  if (!values.empty()) device::pack(executor.context().exec, view, box, values.data(), device::Order::logical);
  return values;
}

/// Largest difference over the largest value; `floor` keeps tensors that are zero but for rounding from counting.
double error_of(const std::vector<double>& got, const std::vector<double>& expected, double largest) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
  return worst / std::max(largest, 1e-3);
}

class ExecutorCase : public ::testing::Test {
protected:
  std::unique_ptr<comm::Comm> comm_ = comm::make_comm("mpi");
  std::unique_ptr<comm::Comm> self_ = comm::make_self_comm();
  device::Exec exec_{1};

  void compare_persistent(const graph::Graph& g, const Executor& parallel, const Executor& serial,
                          const std::string& what) {
    for (std::size_t p = 0; p < serial.persistent().size(); ++p) {
      const Block &mine = parallel.persistent()[p], &whole = serial.persistent()[p];
      ASSERT_EQ(mine.tensor, whole.tensor);
      double largest = 0;
      for (double v : values_of(serial, whole.view, whole.view.box)) largest = std::max(largest, std::abs(v));
      const double error = error_of(values_of(parallel, mine.view, mine.view.box),
                                    values_of(serial, whole.view, mine.view.box), largest);
      EXPECT_LE(error, 1e-9) << what << ": " << g.tensors[mine.tensor].name << " " << tiling::to_string(mine.tiling);
    }
  }

  void compare_metrics(Executor& parallel, const Executor& serial, int program, const std::string& what) {
    const std::vector<double> got = parallel.metrics(program), expected = serial.metrics(program);
    parallel.queue_metrics(program);
    EXPECT_EQ(parallel.take_metrics(), got) << what;
    EXPECT_NEAR(got[0], expected[0], 1e-9 * std::max(1.0, std::abs(expected[0]))) << what;
    EXPECT_EQ(got[1], expected[1]) << what;
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
    Executor parallel(g, programs_of(g, plan, skip), {exec_, *comm_, plan.mesh, comm_->rank()});
    Executor serial(g, programs_of(g, alone), {exec_, *self_, alone.mesh, 0});
    agree(g, plan, {parallel.program(0), parallel.program(1)}, *comm_);
    for (const Executor* executor : {&parallel, &serial}) initialise_parameters(g, *executor, seed);
    for (const Block& block : parallel.persistent()) // bit-identical beginnings
      EXPECT_EQ(values_of(parallel, block.view, block.view.box),
                values_of(serial, serial.persistent(block.tensor).view, block.view.box))
          << what;
    for (int step = 0; step < steps; ++step) {
      for (Executor* executor : {&parallel, &serial}) {
        feed(g, *executor, step);
        executor->run(0);
      }
      compare_metrics(parallel, serial, 0, what);
      compare_bytes(g, plan, parallel, what);
    }
    compare_persistent(g, parallel, serial, what);
    for (Executor* executor : {&parallel, &serial}) {
      feed(g, *executor, steps);
      executor->run(1);
    }
    compare_metrics(parallel, serial, 1, what + ", evaluation");
    compare_persistent(g, parallel, serial, what + ", after evaluation"); // nothing has changed
  }
};

TEST_F(ExecutorCase, RandomGraphsUnderRandomPlansFollowTheSerialRun) {
  const char* more = std::getenv("SOYBEAN_RANDOM_CASES"); // for the long matrices
  const int cases = more != nullptr ? std::atoi(more) : comm_->size() == 1 ? 20 : 45;
  ASSERT_GT(cases, 0);
  for (int c = 0; c < cases; ++c) {
    run_case(static_cast<std::uint64_t>(1000 * comm_->size() + c));
    if (comm::max(*comm_, HasFailure() ? 1.0 : 0.0) > 0) return; // one bad case is enough to read
  }
}

TEST_F(ExecutorCase, PeakIsWhatIsAllocated) {
  const graph::Graph g = support::random_graph(5);
  const plan::Plan plan = support::random_plan(g, support::random_mesh(5, comm_->size()), 5);
  const Context context{exec_, *comm_, plan.mesh, comm_->rank()};
  const Executor executor(g, programs_of(g, plan), context);
  EXPECT_EQ(executor.arena_bytes(), arena_bytes(g, programs_of(g, plan), context));
  EXPECT_EQ(executor.arena_bytes(), std::max(executor.layout(0).arena_bytes, executor.layout(1).arena_bytes));
  EXPECT_GT(executor.arena_bytes(), 0);
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
