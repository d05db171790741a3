// Rows and columns of images split over ranks: convolutions and poolings of every stride, kernel, padding and dilation
// of a small set, on odd extents, under plans that split height and width on all cuts, in double. Parameters and
// metrics must follow the serial run, and the bytes that Comm counted must be the planned ones.
#include "comm/comm.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "program/program.hpp"
#include "runtime/executor.hpp"
#include "runtime/initialise.hpp"
#include "support/graph_steps.hpp"
#include "support/random_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace soybean::runtime {
namespace {

using graph::Graph;
using graph::TensorId;

/// Windows of a layer, the same along height and width but for `narrow`, the kernel's width.
struct Windows {
  std::int64_t kernel, narrow, stride, padding, dilation;
  std::string text() const {
    return fmt::format("kernel {}x{} stride {} padding {} dilation {}", kernel, narrow, stride, padding, dilation);
  }
  bool fit(std::int64_t height, std::int64_t width) const {
    return dilation * (kernel - 1) + 1 <= height + 2 * padding && dilation * (narrow - 1) + 1 <= width + 2 * padding;
  }
};

std::vector<Windows> all_windows(const std::vector<std::int64_t>& dilations) {
  std::vector<Windows> all;
  for (const std::int64_t kernel : {1, 2, 3, 5})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t padding : {0, 1, 2})
        for (const std::int64_t dilation : dilations) {
          const Windows w{kernel, std::max<std::int64_t>(1, kernel - 1), stride, padding, dilation};
          if (w.fit(9, 7)) all.push_back(w);
        }
  return all;
}

/// So that dx of the layer is wanted and its operand made by a node that may be split in other ways.
TensorId images(Graph& graph, std::int64_t channels) {
  graph.precision = DType::f64;
  return ops::conv2d_layer(graph, "first", ops::input_source(graph, 2, {2, 9, 7}),
                           {.channels = channels, .kernel = {1, 1}});
}

Graph finish(Graph graph, TensorId x) {
  x = ops::dense_layer(graph, "dense", ops::flatten_layer(graph, "flatten", x), {.units = 3});
  ops::loss_layer(graph, x);
  ops::add_backward_and_update(graph, {.momentum = 0.9});
  return graph;
}

Graph convolution(const Windows& w, std::int64_t groups) {
  Graph graph{.name = "convolution"};
  const TensorId x = ops::conv2d_layer(graph, "conv", images(graph, 4),
                                       {.channels = groups == 4 ? 8 : 6,
                                        .kernel = {w.kernel, w.narrow},
                                        .stride = {w.stride, w.stride},
                                        .padding = {w.padding, w.padding},
                                        .dilation = {w.dilation, w.dilation},
                                        .groups = groups});
  return finish(std::move(graph), ops::activate(graph, "tanh", x));
}

Graph pooling(const Windows& w, const std::string& op, bool ceil) {
  Graph graph{.name = "pooling"};
  const TensorId x = ops::pool_layer(graph, "pool", op, images(graph, 3),
                                     {.kernel = {w.kernel, w.narrow},
                                      .stride = ops::Pair{w.stride, w.stride},
                                      .padding = {w.padding, std::min(w.padding, w.narrow / 2)},
                                      .dilation = {w.dilation, w.dilation},
                                      .ceil_mode = ceil,
                                      .count_include_pad = !ceil});
  return finish(std::move(graph), x);
}

class Halos : public ::testing::Test {
protected:
  std::unique_ptr<comm::Comm> comm_ = comm::make_comm("mpi");
  std::unique_ptr<comm::Comm> self_ = comm::make_self_comm();
  device::Exec exec_{1};
  int halos_ = 0; ///< buffers that have some

  void compare(const Graph& g, std::uint64_t seed, const std::string& text) {
    const plan::Plan plan =
        support::random_plan(g, support::random_mesh(seed, comm_->size()), seed, support::Splits::images);
    plan::verify(g, plan);
    const std::string what =
        fmt::format("{}, seed {} on {} ranks, mesh {}", text, seed, comm_->size(), tiling::to_string(plan.mesh));
    Executor parallel(g, support::programs_of(g, plan), {exec_, *comm_, plan.mesh, comm_->rank()});
    Executor serial(g, support::programs_of(g, support::serial_plan(g)), {exec_, *self_, {}, 0});
    for (const Executor* executor : {&parallel, &serial}) initialise_parameters(g, *executor, seed);
    for (int step = 0; step < 2; ++step)
      for (Executor* executor : {&parallel, &serial}) {
        support::feed(g, *executor, step);
        executor->run(0);
      }
    const std::vector<double> got = parallel.metrics(0), expected = serial.metrics(0);
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 1e-9 * std::max(1.0, std::abs(expected[i]))) << what << ", metric " << i;
    support::expect_same_state(parallel, serial, {1e-9}, what);
    EXPECT_EQ(comm::sum(*comm_, parallel.profile(0).last.data_bytes), plan.bytes) << what;
    for (const program::Buffer& buffer : parallel.program(0).buffers) halos_ += tiling::has_halo(buffer.tiling);
  }

  /// One bad case on any rank is enough to read.
  bool failed() { return comm::max(*comm_, HasFailure() ? 1.0 : 0.0) > 0; }
};

TEST_F(Halos, ConvolutionsFollowTheSerialRun) {
  std::uint64_t seed = 0;
  for (const Windows& w : all_windows({1, 2})) {
    const std::int64_t groups = std::vector<std::int64_t>{1, 2, 4}[seed % 3]; // 4: depthwise
    compare(convolution(w, groups), ++seed, fmt::format("{}, {} groups", w.text(), groups));
    if (failed()) return;
  }
  EXPECT_GT(halos_, 100);
}

TEST_F(Halos, PoolingsFollowTheSerialRun) {
  std::uint64_t seed = 1000;
  for (const Windows& w : all_windows({1, 2}))
    for (const std::string op : {"max_pool", "avg_pool"}) {
      if (2 * w.padding > w.dilation * (w.kernel - 1) + 1) continue; // refused
      if (w.dilation > 1 && (op == "avg_pool" || w.kernel < 3 || w.padding > 1)) continue;
      compare(pooling(w, op, seed % 2 == 0), seed + 1, op + " " + w.text());
      ++seed;
      if (failed()) return;
    }
  EXPECT_GT(halos_, 50);
}

} // namespace
} // namespace soybean::runtime
