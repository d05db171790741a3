// The executor on an accelerator that stand-ins make up: random graphs under random plans in fp32, on as many ranks as
// there are, against the serial run of the same graph in fp64 on the host.
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "comm/comm.hpp"
#include "device/pack.hpp"
#include "program/program.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "standins/standins.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

using device::TensorView;
using graph::Role;

constexpr int steps = 3;
constexpr double tolerance = 1e-5;

std::vector<program::Program> programs_of(const graph::Graph& g, const plan::Plan& plan) {
  std::vector<program::Program> programs;
  for (const program::Mode mode : {program::Mode::train, program::Mode::evaluate}) {
    programs.push_back(program::lower(g, plan, mode));
    program::run_passes(g, programs.back(), {});
    program::verify(g, plan, programs.back());
  }
  return programs;
}

/// What the host feeds for one element of a source in one step: a float, so that both precisions read the same.
float fed_value(const graph::Graph& g, const graph::Tensor& t, std::int64_t step, std::int64_t index) {
  const philox::Stream stream{17, hash_text(t.name), static_cast<std::uint64_t>(step)};
  const auto i = static_cast<std::uint64_t>(index);
  switch (t.role) {
  case Role::input:
    return static_cast<float>(2 * philox::uniform(stream, i) - 1);
  case Role::label:
    return static_cast<float>(
        std::floor(philox::uniform(stream, i) * static_cast<double>(g.tensors[g.logits].shape[1])));
  case Role::sample_weight: // some rows are padding
    return philox::uniform(stream, i) < 0.2 ? 0.0f : 1.0f / static_cast<float>(t.shape[0]);
  default:
    return index == 0 ? 0.05f : static_cast<float>(step);
  }
}

template<class T>
void feed_block(const device::Exec& exec, const graph::Graph& g, const Block& block, std::int64_t step) {
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
  if (!values.empty()) device::upload(exec, values.data(), block.view, box);
}

void run_step(const graph::Graph& g, Executor& executor, std::int64_t step, int program) {
  const device::Exec& exec = executor.context().exec;
  for (const Block& block : executor.fed()) {
    if (block.view.dtype == DType::f64)
      feed_block<double>(exec, g, block, step);
    else if (block.view.dtype == DType::f32)
      feed_block<float>(exec, g, block, step);
    else
      feed_block<std::int32_t>(exec, g, block, step);
  }
  executor.run(program);
}

template<class T>
std::vector<double> downloaded(const Executor& executor, const TensorView& view, const Box& box) {
  std::vector<T> values(static_cast<std::size_t>(volume(box)));
  if (!values.empty()) device::download(executor.context().exec, view, box, values.data());
  return {values.begin(), values.end()};
}

std::vector<double> values_of(const Executor& executor, const TensorView& view, const Box& box) {
  return view.dtype == DType::f64 ? downloaded<double>(executor, view, box) : downloaded<float>(executor, view, box);
}

/// A run on the accelerator beside the serial one on the host.
class OnStandin : public ::testing::Test {
protected:
  void SetUp() override { standins::reset(); }
  void TearDown() override { EXPECT_EQ(standins::faults(), std::vector<std::string>()); }

  void compare(const Executor& device, const Executor& host, int program, const std::string& what) {
    for (std::size_t p = 0; p < host.persistent().size(); ++p) {
      const Block &mine = device.persistent()[p], &whole = host.persistent()[p];
      ASSERT_EQ(mine.tensor, whole.tensor);
      double largest = 1e-3, worst = 0;
      for (double v : values_of(host, whole.view, whole.view.box)) largest = std::max(largest, std::abs(v));
      const std::vector<double> got = values_of(device, mine.view, mine.view.box),
                                expected = values_of(host, whole.view, mine.view.box);
      for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - expected[i]));
      EXPECT_LE(worst / largest, tolerance) << what << ": tensor " << mine.tensor;
    }
    const std::vector<double> got = device.metrics(program), expected = host.metrics(program);
    EXPECT_NEAR(got[0], expected[0], tolerance * std::max(1.0, std::abs(expected[0]))) << what;
    EXPECT_EQ(got[1], expected[1]) << what;
  }

  void run_case(std::uint64_t seed, const device::Exec& accelerator) {
    const device::Exec host_exec(1);
    const graph::Graph single = support::random_graph(seed, {.precision = DType::f32}),
                       twice = support::random_graph(seed, {.precision = DType::f64});
    const plan::Plan plan = support::random_plan(single, support::random_mesh(seed, comm_->size()), seed),
                     alone = support::serial_plan(twice);
    const std::string what =
        fmt::format("seed {} on {} ranks, mesh {}", seed, comm_->size(), tiling::to_string(plan.mesh));
    Executor device(single, programs_of(single, plan), {accelerator, *comm_, plan.mesh, comm_->rank()});
    Executor host(twice, programs_of(twice, alone), {host_exec, *self_, alone.mesh, 0});
    initialise_parameters(single, device, seed);
    initialise_parameters(twice, host, seed);
    for (int step = 0; step < steps; ++step) {
      run_step(single, device, step, 0);
      run_step(twice, host, step, 0);
    }
    compare(device, host, 0, what);
    run_step(single, device, steps, 1);
    run_step(twice, host, steps, 1);
    compare(device, host, 1, what + ", evaluation");
  }

  std::unique_ptr<comm::Comm> comm_ = comm::make_comm("mpi", {.device = 0});
  std::unique_ptr<comm::Comm> self_ = comm::make_self_comm();
};

TEST_F(OnStandin, RandomGraphsUnderRandomPlansFollowTheHost) {
  {
    const device::Exec accelerator(1, 0);
    for (int c = 0; c < 25; ++c) {
      run_case(static_cast<std::uint64_t>(2000 * comm_->size() + c), accelerator);
      if (comm::max(*comm_, HasFailure() ? 1.0 : 0.0) > 0) return; // one bad case is enough to read
    }
    EXPECT_GT(standins::counts().heuristics, 0); // it went through the vendor layer
  }
  comm_.reset(); // with the queue and the page-locked memory it keeps
  EXPECT_EQ(standins::alive(), (std::map<std::string, int>()));
}

TEST_F(OnStandin, AStepOfOneRankWaitsForNothingAndAllocatesNothing) {
  if (comm_->size() > 1) GTEST_SKIP() << "messages between ranks leave from the host";
  const device::Exec accelerator(1, 0);
  const graph::Graph g = support::random_graph(3, {.precision = DType::f32});
  const plan::Plan plan = support::serial_plan(g);
  Executor executor(g, programs_of(g, plan), {accelerator, *comm_, plan.mesh, 0});
  initialise_parameters(g, executor, 3);
  run_step(g, executor, 0, 0);
  const standins::Counts before = standins::counts();
  run_step(g, executor, 1, 0);
  run_step(g, executor, 2, 0);
  EXPECT_EQ(standins::counts().host_waits, before.host_waits);
  EXPECT_EQ(standins::counts().allocations, before.allocations);
  EXPECT_EQ(standins::counts().heuristics, before.heuristics);
}

} // namespace
} // namespace soybean::runtime
