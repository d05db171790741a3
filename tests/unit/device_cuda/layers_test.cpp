// Pooling and softmax of the vendor layer, against plain loops.
#include "base/error.hpp"
#include "device/cuda/dnn_context.hpp"
#include "device/dnn.hpp"
#include "device/stream.hpp"
#include "fixture.hpp"
#include "support/conv_cases.hpp"
#include "support/device_floats.hpp"
#include "support/layer_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace soybean;
using device::Exec;
using device::Pool;
using device::PoolKind;
using device::Softmax;
using support::DeviceFloats;
using support::draw;
using support::relative_error;

class CudaLayers : public device_cuda_test::StandinTest {};

std::ptrdiff_t calls_of(const std::string& name) {
  return std::count(standins::calls().begin(), standins::calls().end(), name);
}

TEST_F(CudaLayers, PoolsOfNetworksAndOddShapesAreRight) {
  const Exec exec(1, 0);
  for (const Pool& p : support::pools()) {
    SCOPED_TRACE(support::text(p));
    const std::vector<float> x = draw<float>(p.input_size(), 1);
    const DeviceFloats in(exec, x), out(exec, std::vector<float>(static_cast<std::size_t>(p.output_size()), 7));
    EXPECT_TRUE(device::pool(exec, p, in.data(), out.data()));
    EXPECT_LE(relative_error(out.values(), support::naive(p, x)), 1e-6);
  }
}

TEST_F(CudaLayers, SoftmaxesAreRightInPlaceToo) {
  const Exec exec(1, 0);
  for (const Softmax& s : support::softmaxes()) {
    SCOPED_TRACE(support::text(s));
    const std::vector<float> x = draw<float>(s.rows * s.width, 1), dy = draw<float>(s.rows * s.width, 2);
    const support::SoftmaxResults exact = support::naive(s, x, dy);
    const DeviceFloats y(exec, x), dx(exec, dy);
    EXPECT_TRUE(device::softmax(exec, s, y.data(), y.data()));
    EXPECT_LE(relative_error(y.values(), exact.y), 1e-6);
    EXPECT_TRUE(device::softmax_gradient(exec, s, dx.data(), y.data(), dx.data()));
    EXPECT_LE(relative_error(dx.values(), exact.dx), 1e-6);
  }
}

TEST_F(CudaLayers, AMaximumLetsNaNThrough) {
  const Exec exec(1, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const DeviceFloats x(exec, {1, nan, 2, 3}), y(exec, {0, 0});
  EXPECT_TRUE(
      device::pool(exec, {.batch = 1, .channels = 1, .height = 2, .width = 2, .kernel_w = 2}, x.data(), y.data()));
  EXPECT_TRUE(std::isnan(y.values()[0]));
  EXPECT_EQ(y.values()[1], 3);
}

TEST_F(CudaLayers, PlansAreMadeOncePerShape) {
  const Exec exec(1, 0);
  const DeviceFloats x(exec, std::vector<float>(64)), y(exec, std::vector<float>(64));
  const auto step = [&] {
    device::pool(exec, {.batch = 2, .channels = 4, .height = 4, .width = 2, .kernel_h = 2}, x.data(), y.data());
    device::softmax(exec, {.rows = 8, .width = 8}, x.data(), y.data());
    device::softmax_gradient(exec, {.rows = 8, .width = 8}, x.data(), y.data(), x.data());
  };
  step();
  const standins::Counts before = standins::counts();
  const std::map<std::string, int> alive = standins::alive();
  const std::size_t calls = standins::calls().size();
  step();
  EXPECT_EQ(
      std::vector<std::string>(standins::calls().begin() + static_cast<std::ptrdiff_t>(calls), standins::calls().end()),
      (std::vector<std::string>{"cudaSetDevice", "cudnnPoolingForward", "cudaSetDevice", "cudnnSoftmaxForward",
                                "cudaSetDevice", "cudnnSoftmaxBackward"}));
  EXPECT_EQ(standins::alive(), alive);
  EXPECT_EQ(standins::counts().allocations, before.allocations);
  EXPECT_EQ(standins::counts().host_waits, before.host_waits);
}

TEST_F(CudaLayers, CanBeRecorded) {
  standins::set_recording(true);
  const Exec exec(1, 0);
  const DeviceFloats x(exec, {1, 2, 3, 4}), y(exec, {0, 0});
  device::Recording recording;
  ASSERT_TRUE(recording.begin(exec.stream()));
  device::pool(exec, {.batch = 1, .channels = 1, .height = 2, .width = 2, .kernel_h = 2}, x.data(), y.data());
  recording.end(exec.stream());
  EXPECT_EQ(y.values(), (std::vector<float>{0, 0}));
  recording.launch(exec.stream());
  EXPECT_EQ(y.values(), (std::vector<float>{3, 4}));
}

TEST_F(CudaLayers, WhatTheLibraryRefusesItIsNotAskedForAgain) {
  for (const char* call : {"cudnnPoolingForward", "cudnnSoftmaxForward", "cudnnSoftmaxBackward"})
    standins::withdraw_call(call);
  const Exec exec(1, 0);
  const DeviceFloats x(exec, std::vector<float>(16)), y(exec, std::vector<float>(16, 7));
  for (int step = 0; step < 2; ++step) {
    EXPECT_FALSE(device::pool(exec, {.batch = 1, .channels = 1, .height = 4, .width = 4}, x.data(), y.data()));
    EXPECT_FALSE(device::softmax(exec, {.rows = 4, .width = 4}, x.data(), y.data()));
    EXPECT_FALSE(device::softmax_gradient(exec, {.rows = 4, .width = 4}, x.data(), x.data(), y.data()));
  }
  EXPECT_EQ(y.values(), std::vector<float>(16, 7));
  for (const char* call : {"cudnnPoolingForward", "cudnnSoftmaxForward", "cudnnSoftmaxBackward"})
    EXPECT_EQ(calls_of(call), 1) << call;
}

TEST_F(CudaLayers, EmptyOnesLargeOnesAndTheHostsAreNotForTheLibrary) {
  const Exec exec(1, 0), host(1);
  const Pool pool{.batch = 1, .channels = 1, .height = 4, .width = 4};
  EXPECT_FALSE(device::pool(host, pool, nullptr, nullptr));
  EXPECT_FALSE(device::softmax(host, {.rows = 1, .width = 1}, nullptr, nullptr));
  EXPECT_FALSE(device::softmax_gradient(host, {.rows = 1, .width = 1}, nullptr, nullptr, nullptr));
  Pool empty = pool;
  empty.channels = 0;
  EXPECT_FALSE(device::pool(exec, empty, nullptr, nullptr));
  EXPECT_FALSE(device::softmax(exec, {.rows = 0, .width = 3}, nullptr, nullptr));
  exec.dnn().impl().limits.elements = 15;
  EXPECT_FALSE(device::pool(exec, pool, nullptr, nullptr));
  EXPECT_FALSE(device::softmax(exec, {.rows = 4, .width = 4}, nullptr, nullptr));
  EXPECT_EQ(calls_of("cudnnPoolingForward") + calls_of("cudnnSoftmaxForward"), 0);
}

TEST_F(CudaLayers, OtherFailuresAreErrors) {
  const Exec exec(1, 0);
  const DeviceFloats x(exec, std::vector<float>(16)), y(exec, std::vector<float>(16));
  standins::fail_call("cudnnPoolingForward");
  try {
    device::pool(exec, {.batch = 1, .channels = 1, .height = 4, .width = 4}, x.data(), y.data());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("cudnnPoolingForward: failed, CUDNN_STATUS of a stand-in"))
        << error.what();
  }
}

} // namespace
