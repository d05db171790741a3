// Which kernels of floats go to the vendor library, by its stand-in, and that both ways give the same.
#include "device/arena.hpp"
#include "kernels/pool.hpp"
#include "kernels/softmax.hpp"
#include "standins/standins.hpp"
#include "support/conv_cases.hpp"
#include "support/device_floats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using device::Exec;
using device::TensorView;
using kernels::Call;
using kernels::Pool;
using support::DeviceFloats;
using support::draw;
using support::relative_error;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

class CudaKernels : public ::testing::Test {
protected:
  void SetUp() override { standins::reset(); }
  void TearDown() override { EXPECT_EQ(standins::faults(), std::vector<std::string>()); }
};

std::ptrdiff_t calls_of(const std::string& name) {
  return std::count(standins::calls().begin(), standins::calls().end(), name);
}

graph::Node make_node(const std::string& op, graph::Attributes attributes = {}) {
  return {.name = op + "_node", .op = op, .attributes = std::move(attributes), .inputs = {0, 1}, .outputs = {2}};
}

struct PoolCase {
  std::string name;
  bool for_library;
  Pool pool;
};

/// Output sizes as torch's floor rule has them; changed where a case says so.
std::vector<PoolCase> pool_cases() {
  const Pool plain{.kernel = {3, 2},
                   .stride = {2, 1},
                   .padding = {1, 1},
                   .end_padding = {1, 1},
                   .in = {7, 6},
                   .out = {4, 7},
                   .samples = 2,
                   .channels = 3};
  std::vector<PoolCase> cases{{"plain", true, plain},
                              {"in image", true, plain},
                              {"dilated", false, plain},
                              {"other end", false, plain},
                              {"beyond padding", false, plain}};
  cases[1].pool.count_padding = false;
  Pool& dilated = cases[2].pool;
  dilated.dilation[0] = 2, dilated.out[0] = 3; // averages have none: for maxima alone
  Pool& other_end = cases[3].pool;
  other_end.end_padding[1] = 0, other_end.out[1] = 6;
  Pool& beyond = cases[4].pool; // as ceil_mode makes them
  beyond.in[0] = 6, beyond.out[0] = 4;
  return cases;
}

std::int64_t size_in(const Pool& p) {
  return p.samples * p.channels * p.in[0] * p.in[1];
}
std::int64_t size_out(const Pool& p) {
  return p.samples * p.channels * p.out[0] * p.out[1];
}

using PoolKernel = void (*)(const Exec&, const Pool&, const float*, float*);

std::vector<float> pooled(const Exec& exec, PoolKernel kernel, const Pool& p, const std::vector<float>& x) {
  const DeviceFloats in(exec, x), out(exec, std::vector<float>(static_cast<std::size_t>(size_out(p)), 7));
  kernel(exec, p, in.data(), out.data());
  exec.fence();
  return out.values();
}

TEST_F(CudaKernels, PoolsAreTheLibrarysWhereItDefinesThemAlike) {
  for (const auto& [name, for_library, p] : pool_cases())
    for (const PoolKernel kernel : {kernels::max_pool, kernels::avg_pool}) {
      if (kernel == kernels::avg_pool && p.dilation[0] > 1) continue;
      SCOPED_TRACE(name + (kernel == kernels::max_pool ? " max" : " average"));
      standins::reset();
      std::vector<float> x = draw<float>(size_in(p), 1);
      x[4] = nan;
      const Exec exec(1, 0), other(1, 0);
      std::vector<float> library = pooled(exec, kernel, p, x);
      EXPECT_EQ(calls_of("cudnnPoolingForward"), for_library ? 1 : 0);
      standins::withdraw_call("cudnnPoolingForward");
      std::vector<float> ours = pooled(other, kernel, p, x);
      ASSERT_EQ(library.size(), ours.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_EQ(std::isnan(library[i]), std::isnan(ours[i])) << i;
        if (std::isnan(ours[i])) library[i] = ours[i] = 0;
      }
      EXPECT_LE(relative_error(library, ours), kernel == kernels::max_pool ? 0 : 1e-6);
    }
}

TEST_F(CudaKernels, TheFirstOfEqualMaximaGetsTheGradient) {
  const Exec exec(1, 0);
  const Pool p{.kernel = {2, 2}, .stride = {2, 2}, .in = {2, 4}, .out = {1, 2}, .samples = 1, .channels = 1};
  const DeviceFloats x(exec, {1, 5, 0, 0, 5, 5, 0, 0}), dy(exec, {3, 4}), dx(exec, std::vector<float>(8, 7));
  kernels::max_pool_grad(exec, p, dy.data(), x.data(), dx.data());
  exec.fence();
  EXPECT_EQ(dx.values(), (std::vector<float>{0, 3, 4, 0, 0, 0, 0, 0}));
}

TensorView view_of(const DeviceFloats& data, const Shape& shape, std::int64_t spatial = 1) {
  return {.data = data.data(), .dtype = DType::f32, .box = whole(shape), .global = shape, .spatial = spatial};
}

TEST_F(CudaKernels, SoftmaxesAreTheLibrarysAsLongAsItTakesThem) {
  const graph::Node node = make_node("softmax");
  const Shape shape{2, 5, 3, 2};
  const std::vector<float> x = draw<float>(60, 1), dy = draw<float>(60, 2);
  struct Way {
    void (*forward)(const Exec&, const Call&);
    void (*backward)(const Exec&, const Call&);
  };
  for (const Way& way : {Way{kernels::run_softmax, kernels::run_softmax_grad},
                         Way{kernels::run_log_softmax, kernels::run_log_softmax_grad}}) {
    standins::reset();
    std::vector<std::vector<float>> results;
    for (const bool withdrawn : {false, true}) {
      for (const char* call : {"cudnnSoftmaxForward", "cudnnSoftmaxBackward"})
        if (withdrawn) standins::withdraw_call(call);
      const Exec exec(1, 0);
      const DeviceFloats in(exec, x), above(exec, dy), out(exec, std::vector<float>(60, 7)),
          gradient(exec, std::vector<float>(60, 7));
      const TensorView forward_in[] = {view_of(in, shape, 6)}, forward_out[] = {view_of(out, shape, 6)},
                       backward_in[] = {view_of(above, shape, 6), view_of(out, shape, 6)},
                       backward_out[] = {view_of(gradient, shape, 6)};
      way.forward(exec, {.node = node, .inputs = forward_in, .outputs = forward_out});
      way.backward(exec, {.node = node, .inputs = backward_in, .outputs = backward_out});
      exec.fence();
      results.push_back(out.values());
      results.push_back(gradient.values());
    }
    EXPECT_EQ(calls_of("cudnnSoftmaxForward"), 2); // refused once
    EXPECT_EQ(calls_of("cudnnSoftmaxBackward"), 2);
    EXPECT_LE(relative_error(results[0], results[2]), 1e-6);
    EXPECT_LE(relative_error(results[1], results[3]), 1e-6);
  }
}

/// y of a convolution of 1×1 windows with those nodes in its call; the first pixel is NaN.
std::vector<float> convolved(const std::vector<const graph::Node*>& epilogue) {
  const graph::Node node = make_node("conv2d", {{"kernel", std::vector<std::int64_t>{1, 1}},
                                                {"stride", std::vector<std::int64_t>{1, 1}},
                                                {"padding", std::vector<std::int64_t>{0, 0}},
                                                {"dilation", std::vector<std::int64_t>{1, 1}},
                                                {"groups", std::int64_t{1}}});
  const Exec exec(1, 0);
  const DeviceFloats x(exec, {nan, 1, -3, 0}), w(exec, {1, 2}), bias(exec, {1, 1}), y(exec, std::vector<float>(8, 7));
  std::vector<TensorView> inputs{view_of(x, {1, 1, 2, 2}, 4), view_of(w, {2, 1, 1, 1})};
  for (const graph::Node* follower : epilogue)
    if (follower->op == "bias") inputs.push_back(view_of(bias, {2}));
  const TensorView outputs[] = {view_of(y, {1, 2, 2, 2}, 4)};
  const kernels::Kernel& kernel = kernels::find("conv2d", DType::f32);
  Call call{.node = node, .epilogue = epilogue, .inputs = inputs, .outputs = outputs};
  const device::Arena scratch(exec, kernel.scratch_bytes(exec, call));
  call.scratch = scratch.data();
  kernel.run(exec, call);
  exec.fence();
  return y.values();
}

TEST_F(CudaKernels, BiasesOfConvolutionsAreTheLibrarysUnlessAReluFollows) {
  const graph::Node bias = make_node("bias"), relu = make_node("relu");
  const std::vector<float> biased = convolved({&bias});
  EXPECT_EQ(calls_of("cudnnConvolutionBiasActivationForward"), 1);
  EXPECT_EQ(std::vector<float>(biased.begin() + 2, biased.end()), (std::vector<float>{2, 3, -2, -5, 1, 1}));
  const std::vector<float> both = convolved({&bias, &relu});
  EXPECT_EQ(calls_of("cudnnConvolutionBiasActivationForward"), 1);
  EXPECT_EQ(calls_of("cudnnConvolutionForward"), 1);
  EXPECT_TRUE(std::isnan(both[0]) && std::isnan(both[1])); // a run that has gone wrong must not look sound
  EXPECT_EQ(std::vector<float>(both.begin() + 2, both.end()), (std::vector<float>{2, 3, 0, 0, 1, 1}));
}

} // namespace
