// The executor on accelerators: random graphs under random plans in fp32, on as many ranks as there are, against the
// serial run of the same graph in fp64 on the host. Where ranks have accelerators of their own, so do not share them,
// steps are recorded.
#include "comm/mpi_session.hpp"
#include "cuda/accelerator.hpp"
#include "runtime/binding.hpp"
#include "runtime/initialise.hpp"
#include "support/graph_steps.hpp"
#include "support/random_graph.hpp"
#include "support/random_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

constexpr int steps = 4; // the third and the fourth as recordings where that is possible
constexpr double tolerance = 1e-5;

/// This rank's number on its host.
int local_rank(const std::vector<std::string>& hosts) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank, hosts[static_cast<std::size_t>(rank)]));
}

/// The hosts that the ranks take for theirs: SOYBEAN_TEST_HOSTS=n makes n of them, with neighbouring ranks on each, so
/// that transfers between hosts can be tested on one.
std::vector<std::string> hosts_for_comm(std::vector<std::string> hosts) {
  const char* emulated = std::getenv("SOYBEAN_TEST_HOSTS");
  if (emulated == nullptr) return hosts;
  const std::size_t count = std::stoul(emulated), ranks = hosts.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) hosts[rank] = fmt::format("emulated{}", rank * count / ranks);
  return hosts;
}

/// Batch norms amplify what fp32 rounds, on one rank already, and so do updates that divide gradients by their own
/// size: of such graphs' steps the metrics alone are held to a bound.
bool amplifies_rounding(const graph::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& node) {
    return node.op == "batch_norm" || (node.op.ends_with("_update") && node.op != "sgd_update");
  });
}

/// A run on the accelerator beside the serial one on the host.
class OnAccelerators : public ::testing::Test {
protected:
  void SetUp() override { test::begin_accelerated(); }
  void TearDown() override {
    comm_.reset(); // with the queues and the page-locked memory it keeps
    test::end_accelerated();
  }

  void compare_metrics(const Executor& device, const Executor& host, int program, const std::string& what) {
    const std::vector<double> got = device.metrics(program), expected = host.metrics(program);
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i]))) << what << ", metric " << i;
  }

  void run_case(std::uint64_t seed, const device::Exec& accelerator) {
    const device::Exec host_exec(1);
    const graph::Graph single = support::random_graph(seed, {.precision = DType::f32}),
                       twice = support::random_graph(seed, {.precision = DType::f64});
    const plan::Plan plan = support::random_plan(single, support::random_mesh(seed, comm_->size()), seed),
                     alone = support::serial_plan(twice);
    const std::string what =
        fmt::format("seed {} on {} ranks, mesh {}", seed, comm_->size(), tiling::to_string(plan.mesh));
    Executor device(single, support::programs_of(single, plan), {accelerator, *comm_, plan.mesh, comm_->rank()});
    Executor host(twice, support::programs_of(twice, alone), {host_exec, *self_, alone.mesh, 0});
    initialise_parameters(single, device, seed);
    initialise_parameters(twice, host, seed);
    const auto run_both = [&](int step, int program) {
      support::feed(single, device, step);
      device.run(program);
      support::feed(twice, host, step);
      host.run(program);
      compare_metrics(device, host, program, fmt::format("{}, step {} of program {}", what, step, program));
      EXPECT_EQ(comm::sum(*comm_, device.profile(program).last.data_bytes),
                program::planned_bytes(single, device.program(program)).data)
          << what;
    };
    const bool drifts = amplifies_rounding(single);
    compared_in_full_ += drifts ? 0 : 1;
    for (int step = 0; step < steps; ++step) run_both(step, 0);
    if (!drifts) support::expect_same_state(device, host, {tolerance}, what);
    for (int step = 0; step < steps; ++step) run_both(steps + step, 1);
    if (!drifts) support::expect_same_state(device, host, {tolerance}, what + ", after evaluation");
  }

  int compared_in_full_ = 0; // cases whose weights were held to a bound, too

  std::vector<std::string> hosts_ = comm::host_names();
  int device_ = test::device_of(local_rank(hosts_));
  std::unique_ptr<comm::Comm> comm_ =
      comm::make_comm(test::comm_name(), {.device = device_, .hosts = hosts_for_comm(hosts_)});
  std::unique_ptr<comm::Comm> self_ = comm::make_self_comm();
};

TEST_F(OnAccelerators, RandomGraphsUnderRandomPlansFollowTheHost) {
  const device::Exec accelerator(1, device_);
  for (int c = 0; c < 25 || compared_in_full_ < 10; ++c) {
    run_case(2000 * static_cast<std::uint64_t>(comm_->size()) + static_cast<std::uint64_t>(c), accelerator);
    if (comm::max(*comm_, HasFailure() ? 1.0 : 0.0) > 0) return; // one bad case is enough to read
  }
}

} // namespace
} // namespace soybean::runtime
