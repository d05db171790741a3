// Every function of CUDA's libraries that this code calls fails in turn: each gives an Error that names it, and nothing
// stays behind.
#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/devices.hpp"
#include "device/dnn.hpp"
#include "device/stream.hpp"
#include "fixture.hpp"
#include "support/conv_cases.hpp"
#include "support/device_floats.hpp"

#include <set>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using device::Arena;
using device::Conv;
using device::ConvPass;
using device::Exec;
using support::DeviceFloats;

class CudaFailure : public device_cuda_test::StandinTest {};

void convolve(const Exec& exec) {
  const Conv c{.batch = 2, .in_channels = 2, .out_channels = 3, .height = 4, .width = 4, .kernel_h = 2};
  const auto in = support::random_tensors<float>(c);
  const DeviceFloats x(exec, in.x), w(exec, in.w), y(exec, in.y);
  std::int64_t bytes = 0;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights})
    bytes = std::max(bytes, device::conv_scratch_bytes(exec, c, pass));
  const Arena scratch(exec, bytes);
  device::conv_forward(exec, c, x.data(), w.data(), y.data(), scratch.data());
  Conv biased = c;
  biased.bias = true;
  device::conv_forward(exec, biased, x.data(), w.data(), y.data(), scratch.data(), w.data());
  standins::withdraw_call("cudnnConvolutionBiasActivationForward");
  device::conv_forward(exec, biased, x.data(), w.data(), y.data(), scratch.data(), w.data());
  device::conv_backward_data(exec, c, y.data(), w.data(), x.data(), scratch.data());
  device::conv_backward_weights(exec, c, y.data(), x.data(), w.data(), scratch.data());
  y.values();
}

void pool_and_normalise(const Exec& exec) {
  const DeviceFloats x(exec, std::vector<float>(48, 1.0f)), y(exec, std::vector<float>(48));
  ASSERT_TRUE(
      device::pool(exec, {.batch = 2, .channels = 3, .height = 4, .width = 2, .kernel_h = 2}, x.data(), y.data()));
  const device::Softmax rows{.rows = 6, .width = 8};
  ASSERT_TRUE(device::softmax(exec, rows, x.data(), y.data()));
  ASSERT_TRUE(device::softmax_gradient(exec, rows, x.data(), y.data(), x.data()));
  y.values();
}

void multiply(const Exec& exec) {
  const device::Matmul s{.m = 3, .n = 2, .k = 5, .a_transposed = true};
  const DeviceFloats a(exec, std::vector<float>(15)), b(exec, std::vector<float>(10)), c(exec, std::vector<float>(6));
  const Arena scratch(exec, device::matmul_scratch_bytes(exec, s));
  device::Recording recording;
  ASSERT_TRUE(recording.begin(exec.stream()));
  device::matmul(exec, s, a.data(), b.data(), c.data(), scratch.data());
  recording.end(exec.stream());
  recording.launch(exec.stream());
  exec.fence();
}

void order(const Exec& exec) {
  device::Stream other(0), host;
  device::Event event(0);
  const device::HostBuffer buffer(0, 64);
  const Arena memory(exec, 64);
  other.copy(memory.data(), buffer.data(), 64);
  event.record(other);
  exec.stream().wait(event);
  host.wait(event);
  event.done();
  exec.stream().zero(memory.data(), 64);
}

void everything() {
  ASSERT_EQ(device::device_count(), 1);
  device::device_facts(0);
  device::accelerator_versions();
  const Exec exec(1, 0);
  order(exec);
  convolve(exec);
  pool_and_normalise(exec);
  multiply(exec);
}

/// Functions called in destructors, where a failure can not be told.
bool is_release(const std::string& call) {
  return call.find("Destroy") != std::string::npos || call.find("Free") != std::string::npos;
}

TEST_F(CudaFailure, OfAnyCallIsAnErrorThatNamesIt) {
  standins::set_recording(true);
  everything();
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): there are more to come
  const std::vector<std::string> calls = standins::calls();
  std::set<std::string> seen;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    SCOPED_TRACE(fmt::format("call {} of {}: {}", k + 1, calls.size(), calls[k]));
    standins::reset();
    standins::set_recording(true);
    standins::fail_call(static_cast<std::int64_t>(k) + 1);
    std::string text;
    try {
      everything();
    } catch (const Error& error) {
      text = error.what();
      EXPECT_EQ(error.code(), ExitCode::failed);
    }
    if (is_release(calls[k]))
      EXPECT_EQ(text, "");
    else
      EXPECT_TRUE(text.starts_with(calls[k] + ": failed, ")) << text;
    EXPECT_EQ(standins::faults(), std::vector<std::string>());
    EXPECT_EQ(standins::alive(), (std::map<std::string, int>()));
    seen.insert(calls[k]);
  }
  EXPECT_GE(seen.size(), 65u);
  for (const char* call : {"cudaMalloc", "cudaGraphLaunch", "cudaEventQuery", "cudnnSetStream", "cudnnTransformTensor",
                           "cudnnConvolutionBackwardFilter", "cudnnConvolutionBiasActivationForward", "cudnnAddTensor",
                           "cudnnPoolingForward", "cudnnSoftmaxForward", "cudnnSoftmaxBackward", "cublasLtMatmul",
                           "cublasLtMatmulAlgoGetHeuristic"})
    EXPECT_TRUE(seen.contains(call)) << call;
}

TEST_F(CudaFailure, SaysWhereAndWhatTheLibrarySays) {
  const Exec exec(1, 0);
  standins::fail_call(1);
  try {
    device::conv_scratch_bytes(exec, support::network_convs()[0], ConvPass::forward);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("cudaSetDevice: failed, stand-in error (dnn.cpp:"))
        << error.what();
  }
  standins::fail_call(2);
  try {
    device::conv_scratch_bytes(exec, support::network_convs()[0], ConvPass::forward);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what())
                    .starts_with("cudnnCreate: failed, CUDNN_STATUS of a stand-in, stand-in detail (dnn.cpp:"))
        << error.what();
  }
}

} // namespace
