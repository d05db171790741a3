#include "device/dnn.hpp"

#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/cuda/dnn_context.hpp"
#include "device/stream.hpp"
#include "fixture.hpp"
#include "support/conv_cases.hpp"
#include "support/device_floats.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using device::Arena;
using device::Conv;
using device::ConvPass;
using device::Exec;
using device::Math;
using device::Matmul;
using support::DeviceFloats;
using support::draw;
using support::relative_error;
using support::Tensors;

constexpr ConvPass passes[] = {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights};

/// Scratch of exactly the bytes asked for, full of NaN.
Arena make_scratch(const Exec& exec, std::int64_t bytes) {
  Arena scratch(exec, bytes);
  if (bytes > 0) std::memset(scratch.data(), 0xff, static_cast<std::size_t>(bytes));
  return scratch;
}

/// All three passes on the accelerator.
Tensors<float> run(const Exec& exec, const Conv& c, const Tensors<float>& in) {
  const auto filled = [](std::size_t n) { return std::vector<float>(n, 7.0f); };
  const DeviceFloats x(exec, in.x), w(exec, in.w), y(exec, in.y);
  const DeviceFloats out_x(exec, filled(in.x.size())), out_w(exec, filled(in.w.size())),
      out_y(exec, filled(in.y.size()));
  const auto scratch = [&](ConvPass pass) { return make_scratch(exec, device::conv_scratch_bytes(exec, c, pass)); };
  const Arena a = scratch(passes[0]), b = scratch(passes[1]), d = scratch(passes[2]);
  device::conv_forward(exec, c, x.data(), w.data(), out_y.data(), a.data());
  device::conv_backward_data(exec, c, y.data(), w.data(), out_x.data(), b.data());
  device::conv_backward_weights(exec, c, y.data(), x.data(), out_w.data(), d.data());
  return {out_x.values(), out_w.values(), out_y.values()};
}

void expect_right(const Exec& exec, const Conv& c) {
  SCOPED_TRACE(support::text(c));
  const Tensors<float> out = run(exec, c, support::random_tensors<float>(c));
  const Tensors<double> exact = support::naive(c, support::random_tensors<double>(c));
  EXPECT_LE(relative_error(out.y, exact.y), 1e-6) << "forward";
  EXPECT_LE(relative_error(out.x, exact.x), 1e-6) << "backward data";
  EXPECT_LE(relative_error(out.w, exact.w), 1e-6) << "backward weights";
}

/// Whether the library was called by this name since the last reset.
bool was_called(const std::string& name) {
  return std::find(standins::calls().begin(), standins::calls().end(), name) != standins::calls().end();
}

/// The forward pass with a bias.
void expect_right_with_bias(const Exec& exec, Conv c) {
  SCOPED_TRACE(support::text(c));
  const Tensors<float> in = support::random_tensors<float>(c);
  std::vector<double> exact = support::naive(c, support::random_tensors<double>(c)).y;
  const std::vector<float> bias = draw<float>(c.out_channels, 9);
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += bias[i % bias.size()];
  c.bias = true;
  const DeviceFloats x(exec, in.x), w(exec, in.w), shift(exec, bias),
      y(exec, std::vector<float>(exact.size(), std::numeric_limits<float>::quiet_NaN()));
  const Arena scratch = make_scratch(exec, device::conv_scratch_bytes(exec, c, ConvPass::forward));
  device::conv_forward(exec, c, x.data(), w.data(), y.data(), scratch.data(), shift.data());
  EXPECT_LE(relative_error(y.values(), exact), 1e-6);
}

/// One whose weights the library takes in another order.
constexpr Conv small{.batch = 2,
                     .in_channels = 3,
                     .out_channels = 5,
                     .height = 6,
                     .width = 5,
                     .kernel_h = 3,
                     .kernel_w = 2,
                     .padding_h = 1};

class CudaDnn : public device_cuda_test::StandinTest {
protected:
  /// All work went to this stream or, zeroing new memory, to the default one.
  static void expect_used(const Exec& exec) {
    for (const void* stream : standins::streams_used())
      EXPECT_TRUE(stream == exec.stream().native() || stream == cudaStreamLegacy);
  }
};

TEST_F(CudaDnn, ConvolutionsOfNetworksAreRight) {
  const Exec exec(1, 0);
  for (const Conv& c : support::network_convs()) expect_right(exec, c);
  expect_used(exec);
}

TEST_F(CudaDnn, ConvolutionsOfRandomShapesAreRight) {
  const Exec exec(1, 0);
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) expect_right(exec, support::random_conv(random));
}

TEST_F(CudaDnn, ConvolutionsAddTheirBias) {
  const Exec exec(1, 0);
  std::vector<Conv> shapes{small};
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) shapes.push_back(support::random_conv(random));
  for (const Conv& c : shapes) {
    EXPECT_TRUE(device::conv_takes_bias(exec, c, false));
    EXPECT_FALSE(device::conv_takes_bias(exec, c, true)); // a relu would hide NaN in the library's call
    expect_right_with_bias(exec, c);
  }
  EXPECT_TRUE(was_called("cudnnConvolutionBiasActivationForward"));
  EXPECT_FALSE(was_called("cudnnConvolutionForward"));
  EXPECT_FALSE(was_called("cudnnAddTensor"));
  expect_used(exec);
}

TEST_F(CudaDnn, PlansAreTheSameWithABiasAndWithout) {
  const Exec exec(1, 0);
  Conv c = small;
  const std::int64_t bytes = device::conv_scratch_bytes(exec, c, ConvPass::forward);
  c.bias = true;
  EXPECT_EQ(device::conv_scratch_bytes(exec, c, ConvPass::forward), bytes);
  EXPECT_EQ(exec.dnn().impl().convs.size(), 1u);
  EXPECT_EQ(standins::counts().heuristics, 1);
}

// One algorithm alone adds a bias without an activation.
TEST_F(CudaDnn, OtherAlgorithmsAddABiasInACallOfItsOwn) {
  standins::set_first_workspace((std::int64_t{256} << 20) + 1);
  const Exec exec(1, 0);
  EXPECT_EQ(device::conv_implementation(exec, small, ConvPass::forward), "implicit_gemm");
  EXPECT_FALSE(device::conv_takes_bias(exec, small, false));
  expect_right_with_bias(exec, small);
  EXPECT_TRUE(was_called("cudnnAddTensor"));
}

TEST_F(CudaDnn, BiasesThatTheLibraryRefusesAreAddedInACallOfTheirOwn) {
  standins::withdraw_call("cudnnConvolutionBiasActivationForward");
  const Exec exec(1, 0);
  EXPECT_TRUE(device::conv_takes_bias(exec, small, false)); // it has not been asked yet
  expect_right_with_bias(exec, small);
  EXPECT_FALSE(device::conv_takes_bias(exec, small, false));
  expect_right_with_bias(exec, small);
  const std::vector<std::string>& calls = standins::calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cudnnConvolutionBiasActivationForward"), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cudnnAddTensor"), 2);
}

TEST_F(CudaDnn, BiasesOfConvolutionsThatAreMissingOrTooMuchAreBugs) {
  const Exec exec(1, 0);
  Conv c{.batch = 1, .in_channels = 2, .out_channels = 3, .height = 4, .width = 4};
  const DeviceFloats data(exec, std::vector<float>(64));
  const Arena scratch = make_scratch(exec, 1 << 16);
  const auto forward = [&](const float* bias) {
    device::conv_forward(exec, c, data.data(), data.data(), data.data(), scratch.data(), bias);
  };
  EXPECT_THROW(forward(data.data()), Bug);
  c.bias = true;
  EXPECT_THROW(forward(nullptr), Bug);
  EXPECT_THROW(device::conv_backward_data(exec, c, data.data(), data.data(), data.data(), scratch.data()), Bug);
  c.in_channels = 0;
  EXPECT_FALSE(device::conv_takes_bias(exec, c, false));
  EXPECT_THROW(forward(data.data()), Bug);
}

TEST_F(CudaDnn, EmptyConvolutionsGiveZeros) {
  const Exec exec(1, 0);
  for (const Conv& c : support::empty_convs()) {
    SCOPED_TRACE(support::text(c));
    for (const ConvPass pass : passes) {
      EXPECT_EQ(device::conv_scratch_bytes(exec, c, pass), 0);
      EXPECT_EQ(device::conv_implementation(exec, c, pass), "none");
    }
    const Tensors<float> out = run(exec, c, support::random_tensors<float>(c));
    EXPECT_EQ(out.x, std::vector<float>(static_cast<std::size_t>(c.input_size())));
    EXPECT_EQ(out.w, std::vector<float>(static_cast<std::size_t>(c.weight_size())));
    EXPECT_EQ(out.y, std::vector<float>(static_cast<std::size_t>(c.output_size())));
  }
}

TEST_F(CudaDnn, AlgorithmsAreDeterministicAndKeepToTheirWorkspace) {
  const Conv c = support::network_convs()[1];
  const std::int64_t weights = c.weight_size() * 4;
  {
    const Exec exec(1, 0);
    EXPECT_EQ(device::conv_implementation(exec, c, passes[0]), "implicit_precomp_gemm");
    EXPECT_EQ(device::conv_implementation(exec, c, passes[1]), "algorithm_1");
    EXPECT_EQ(device::conv_implementation(exec, c, passes[2]), "algorithm_1");
    for (const ConvPass pass : passes) EXPECT_EQ(device::conv_scratch_bytes(exec, c, pass), weights + 4096);
  }
  standins::set_first_workspace((std::int64_t{256} << 20) + 1); // more than is allowed: the next one
  const Exec exec(1, 0);
  EXPECT_EQ(device::conv_implementation(exec, c, passes[0]), "implicit_gemm");
  EXPECT_EQ(device::conv_implementation(exec, c, passes[1]), "fft_tiling");
  EXPECT_EQ(device::conv_implementation(exec, c, passes[2]), "fft_tiling");
  for (const ConvPass pass : passes) EXPECT_EQ(device::conv_scratch_bytes(exec, c, pass), weights);
  expect_right(exec, c);
}

TEST_F(CudaDnn, TakesMoreWorkspaceThanTheLimitWhereThereIsNoOtherWay) {
  const Exec exec(1, 0);
  exec.dnn().impl().limits.workspace_bytes = -1; // none keeps to it: the least
  const Conv c{.batch = 1, .in_channels = 2, .out_channels = 3, .height = 4, .width = 4};
  EXPECT_EQ(device::conv_implementation(exec, c, ConvPass::forward), "implicit_gemm");
  EXPECT_EQ(device::conv_scratch_bytes(exec, c, ConvPass::forward), 0);
}

TEST_F(CudaDnn, SaysWhenNoAlgorithmMayBeTaken) {
  standins::set_deterministic_algorithms(false);
  const Exec exec(1, 0);
  const auto text_of = [&](auto call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      return std::string(error.what());
    }
    return std::string();
  };
  const Conv c{.batch = 1, .in_channels = 2, .out_channels = 3, .height = 4, .width = 4};
  const char* names[] = {"forward", "backward data", "backward weights"};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(text_of([&] { device::conv_scratch_bytes(exec, c, passes[i]); }),
              fmt::format("cuDNN: {}: no deterministic algorithm for this convolution. another version of cuDNN may "
                          "have one",
                          names[i]));
  EXPECT_EQ(text_of([&] { device::matmul_scratch_bytes(exec, {.m = 2, .n = 3, .k = 4}); }),
            "cuBLASLt: no algorithm for a matrix product of m 2 n 3 k 4");
}

// More elements than the library counts: several calls, gradients of weights added up.
TEST_F(CudaDnn, LargeBatchesAreCutIntoCalls) {
  for (const std::int64_t batch : {7, 8, 9}) {
    const Exec exec(1, 0);
    const Conv c{.batch = batch,
                 .in_channels = 3,
                 .out_channels = 4,
                 .height = 6,
                 .width = 5,
                 .kernel_h = 3,
                 .kernel_w = 2,
                 .padding_h = 1};
    exec.dnn().impl().limits.elements = 3 * c.output_size() / batch + 1; // three images
    expect_right(exec, c);
    expect_right_with_bias(exec, c);
    EXPECT_EQ(exec.dnn().impl().convs.size(), batch == 9 ? 3u : 6u);
    exec.dnn().impl().limits.elements = c.output_size() / batch - 1;
    try {
      device::conv_scratch_bytes(exec, c, ConvPass::forward);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "cuDNN: an image of 96 elements in a convolution, got more than the 95 it takes. split "
                   "height or channels over ranks, or use smaller images");
    }
  }
}

// Kernels of the library read 16 bytes at a time.
TEST_F(CudaDnn, CallsBeginAtAlignedImages) {
  const Conv c{
      .batch = 23, .in_channels = 1, .out_channels = 1, .height = 3, .width = 5, .kernel_h = 3, .padding_h = 1};
  const auto images = [&](std::int64_t most) {
    return device::cuda::images_per_call(c, {.elements = most * c.output_size() / c.batch});
  };
  EXPECT_EQ(images(23), 23);
  EXPECT_EQ(images(22), 12);
  EXPECT_EQ(images(12), 12);
  EXPECT_EQ(images(11), 8);
  EXPECT_EQ(images(4), 4);
  EXPECT_EQ(images(3), 3); // images of a fourth of what the library counts are left as they are
  const Exec exec(1, 0);
  exec.dnn().impl().limits.elements = 11 * c.output_size() / c.batch;
  expect_right(exec, c);
}

TEST_F(CudaDnn, ProductsAreRightInEveryTransposition) {
  const Exec exec(1, 0);
  std::vector<Matmul> shapes = support::products();
  for (const support::Dense& s : support::dense_layers()) {
    shapes.push_back({.m = s.batch, .n = s.out, .k = s.in, .b_transposed = true});
    shapes.push_back({.m = s.batch, .n = s.in, .k = s.out});
    shapes.push_back({.m = s.out, .n = s.in, .k = s.batch, .a_transposed = true});
  }
  for (const Matmul& s : shapes) {
    SCOPED_TRACE(fmt::format("m {} n {} k {} a {} b {}", s.m, s.n, s.k, s.a_transposed, s.b_transposed));
    const std::vector<float> a = draw<float>(s.m * s.k, 4), b = draw<float>(s.k * s.n, 5);
    const DeviceFloats da(exec, a), db(exec, b), dc(exec, std::vector<float>(static_cast<std::size_t>(s.m * s.n), 7));
    const Arena scratch = make_scratch(exec, device::matmul_scratch_bytes(exec, s));
    device::matmul(exec, s, da.data(), db.data(), dc.data(), scratch.data());
    EXPECT_LE(relative_error(dc.values(), support::naive_product(s, a, b)), 1e-6);
  }
  expect_used(exec);
}

TEST_F(CudaDnn, ProductsAddTheBiasOfEachColumn) {
  const Exec exec(1, 0);
  for (Matmul s : support::products()) {
    const std::vector<float> a = draw<float>(s.m * s.k, 4), b = draw<float>(s.k * s.n, 5), bias = draw<float>(s.n, 6);
    s.bias = true;
    const DeviceFloats da(exec, a), db(exec, b), dbias(exec, bias),
        dc(exec, std::vector<float>(static_cast<std::size_t>(s.m * s.n), 7));
    const Arena scratch = make_scratch(exec, device::matmul_scratch_bytes(exec, s));
    device::matmul(exec, s, da.data(), db.data(), dc.data(), scratch.data(), dbias.data());
    std::vector<double> expected = support::naive_product(s, a, b);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % bias.size()];
    EXPECT_LE(relative_error(dc.values(), expected), 1e-6);
  }
  expect_used(exec);
}

TEST_F(CudaDnn, BiasesThatAreMissingOrTooMuchAreBugs) {
  const Exec exec(1, 0);
  const DeviceFloats a(exec, std::vector<float>(16, 1.0f)), b(exec, std::vector<float>(16, 1.0f)),
      c(exec, std::vector<float>(16, 1.0f));
  const auto product = [&](const Matmul& s, const float* bias) {
    const Arena scratch = make_scratch(exec, device::matmul_scratch_bytes(exec, s));
    device::matmul(exec, s, a.data(), b.data(), c.data(), scratch.data(), bias);
  };
  EXPECT_THROW(product({.m = 2, .n = 2, .k = 2, .bias = true}, nullptr), Bug);
  EXPECT_THROW(product({.m = 2, .n = 2, .k = 2}, a.data()), Bug);
  EXPECT_THROW(product({.m = 2, .n = 2, .k = 0, .bias = true}, a.data()), Bug);
}

TEST_F(CudaDnn, EmptyProductsGiveZeros) {
  const Exec exec(1, 0);
  for (const Matmul& s : {Matmul{.m = 0, .n = 3, .k = 5}, {.m = 3, .n = 0, .k = 5}, {.m = 3, .n = 5, .k = 0}}) {
    const DeviceFloats c(exec, std::vector<float>(static_cast<std::size_t>(s.m * s.n), 7));
    EXPECT_EQ(device::matmul_scratch_bytes(exec, s), 0);
    device::matmul(exec, s, nullptr, nullptr, c.data(), nullptr);
    EXPECT_EQ(c.values(), std::vector<float>(static_cast<std::size_t>(s.m * s.n)));
  }
}

TEST_F(CudaDnn, ArithmeticIsWhatTheExecAsksFor) {
  const Conv c = support::network_convs()[0];
  const Matmul s{.m = 3, .n = 4, .k = 6};
  const std::vector<float> ones(24, 1.0f);
  for (const Math math : {Math::fp32, Math::tf32}) {
    const Exec exec(1, 0, math);
    EXPECT_EQ(exec.math(), math);
    run(exec, c, support::random_tensors<float>(c));
    EXPECT_EQ(standins::latest_math(), math == Math::fp32 ? "fp32" : "tf32");
    const DeviceFloats a(exec, ones), b(exec, ones), d(exec, ones);
    device::matmul_scratch_bytes(exec, s);
    device::matmul(exec, s, a.data(), b.data(), d.data(), nullptr);
    EXPECT_EQ(standins::latest_math(), math == Math::fp32 ? "fp32" : "tf32");
    EXPECT_EQ(d.values()[11], 6.0f);
  }
  EXPECT_EQ(Exec(1).math(), Math::fp32);
}

TEST_F(CudaDnn, CallsSearchAndAllocateNothingOnceTheirScratchIsKnown) {
  const Exec exec(1, 0);
  const Conv c = support::network_convs()[1];
  const Matmul s{.m = 8, .n = 12, .k = 17};
  const Tensors<float> in = support::random_tensors<float>(c);
  const DeviceFloats x(exec, in.x), w(exec, in.w), y(exec, in.y);
  std::int64_t bytes = device::matmul_scratch_bytes(exec, s);
  for (const ConvPass pass : passes) bytes = std::max(bytes, device::conv_scratch_bytes(exec, c, pass));
  const Arena scratch(exec, bytes);
  const standins::Counts before = standins::counts();
  EXPECT_EQ(before.heuristics, 4);
  const std::map<std::string, int> alive = standins::alive();
  for (int step = 0; step < 3; ++step) {
    device::conv_forward(exec, c, x.data(), w.data(), y.data(), scratch.data());
    device::conv_backward_data(exec, c, y.data(), w.data(), x.data(), scratch.data());
    device::conv_backward_weights(exec, c, y.data(), x.data(), w.data(), scratch.data());
    device::matmul(exec, s, x.data(), w.data(), y.data(), scratch.data());
  }
  EXPECT_EQ(standins::counts().heuristics, before.heuristics);
  EXPECT_EQ(standins::counts().allocations, before.allocations);
  EXPECT_EQ(standins::counts().host_waits, before.host_waits);
  EXPECT_EQ(standins::alive(), alive);
}

TEST_F(CudaDnn, CallsCanBeRecorded) {
  standins::set_recording(true);
  const Exec exec(1, 0);
  const Matmul s{.m = 5, .n = 7, .k = 3};
  const std::vector<float> a = draw<float>(15, 1), b = draw<float>(21, 2), other = draw<float>(15, 3);
  const DeviceFloats da(exec, a), db(exec, b), dc(exec, std::vector<float>(35));
  const Arena scratch(exec, device::matmul_scratch_bytes(exec, s));
  device::Recording recording;
  ASSERT_TRUE(recording.begin(exec.stream()));
  device::matmul(exec, s, da.data(), db.data(), dc.data(), scratch.data());
  recording.end(exec.stream());
  EXPECT_EQ(dc.values(), std::vector<float>(35));
  device::copy_from_host(exec, da.data(), other.data(), da.bytes());
  recording.launch(exec.stream());
  EXPECT_LE(relative_error(dc.values(), support::naive_product(s, other, b)), 1e-6);
}

TEST_F(CudaDnn, BelongsToItsAccelerator) {
  standins::set_accelerators({{}, {}});
  const Exec first(1, 0), second(1, 1);
  const Conv c = support::network_convs()[7];
  for (int round = 0; round < 2; ++round) {
    expect_right(first, c);
    expect_right(second, c);
  }
}

TEST_F(CudaDnn, FloatsOfTheHostAreRefused) {
  const Exec exec(1);
  EXPECT_THROW(device::matmul_scratch_bytes(exec, {.m = 1, .n = 1, .k = 1}), Bug);
}

TEST_F(CudaDnn, WhatDoesNotFitIsABug) {
  const Exec exec(1, 0);
  const DeviceFloats data(exec, std::vector<float>(64));
  const Matmul s{.m = 2, .n = 2, .k = 4};
  EXPECT_THROW(device::matmul(exec, s, data.data() + 1, data.data(), data.data(), nullptr), Bug);
  const Conv c{.batch = 1, .in_channels = 2, .out_channels = 3, .height = 4, .width = 4, .kernel_h = 2};
  EXPECT_THROW(device::conv_forward(exec, c, data.data(), data.data(), data.data(), nullptr), Bug);
}

} // namespace
