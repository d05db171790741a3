#include "kernels/conv2d.hpp"

#include "base/error.hpp"
#include "kernels/conv2d_reference.hpp"
#include "support/conv_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using device::Conv;
using device::ConvPass;
using device::Exec;
using device::TensorView;
using kernels::Call;
using support::draw;
using support::naive;
using support::network_convs;
using support::random_conv;
using support::random_tensors;
using support::relative_error;
using support::Tensors;
using support::text;

struct FreeMemory {
  void operator()(void* p) const { std::free(p); }
};
using Scratch = std::unique_ptr<void, FreeMemory>;

/// Filled with ones' bits: a kernel that reads what it has not written gets NaN.
Scratch make_scratch(std::int64_t bytes) {
  const std::size_t size = static_cast<std::size_t>(bytes + 64) / 64 * 64;
  Scratch out(std::aligned_alloc(64, size));
  std::fill_n(static_cast<unsigned char*>(out.get()), size, static_cast<unsigned char>(255));
  return out;
}

template<class T>
Tensors<T> reference(const Exec& exec, const Conv& c, const Tensors<T>& in) {
  Tensors<T> out{std::vector<T>(in.x.size(), T(7)), std::vector<T>(in.w.size(), T(7)),
                 std::vector<T>(in.y.size(), T(7))};
  const auto scratch = [&](ConvPass pass) {
    return make_scratch(kernels::reference::conv_scratch_bytes(exec, c, pass, sizeof(T)));
  };
  kernels::reference::conv_forward(exec, c, in.x.data(), in.w.data(), out.y.data(), scratch(ConvPass::forward).get());
  kernels::reference::conv_backward_data(exec, c, in.y.data(), in.w.data(), out.x.data(),
                                         scratch(ConvPass::backward_data).get());
  kernels::reference::conv_backward_weights(exec, c, in.y.data(), in.x.data(), out.w.data(),
                                            scratch(ConvPass::backward_weights).get());
  return out;
}

graph::Node node_of(const Conv& c) {
  graph::Node node;
  node.name = "conv";
  node.attributes = {{"kernel", std::vector<std::int64_t>{c.kernel_h, c.kernel_w}},
                     {"stride", std::vector<std::int64_t>{c.stride_h, c.stride_w}},
                     {"padding", std::vector<std::int64_t>{c.padding_h, c.padding_w}},
                     {"dilation", std::vector<std::int64_t>{c.dilation_h, c.dilation_w}},
                     {"groups", c.groups}};
  return node;
}

template<class T>
TensorView view_of(const std::vector<T>& data, const Shape& shape, std::int64_t spatial) {
  return {.data = const_cast<T*>(data.data()),
          .dtype = sizeof(T) == 4 ? DType::f32 : DType::f64,
          .box = whole(shape),
          .global = shape,
          .spatial = spatial};
}

/// Runs the rows of the table on whole tensors.
template<class T>
Tensors<T> table_rows(const Exec& exec, const Conv& c, const Tensors<T>& in) {
  Tensors<T> out{std::vector<T>(in.x.size(), T(7)), std::vector<T>(in.w.size(), T(7)),
                 std::vector<T>(in.y.size(), T(7))};
  const graph::Node node = node_of(c);
  const auto views = [&](const Tensors<T>& t) {
    return std::vector<TensorView>{
        view_of(t.x, {c.batch, c.in_channels, c.height, c.width}, c.height * c.width),
        view_of(t.w, {c.out_channels, c.in_channels / c.groups, c.kernel_h, c.kernel_w}, 1),
        view_of(t.y, {c.batch, c.out_channels, c.out_height(), c.out_width()}, c.out_height() * c.out_width())};
  };
  const std::vector<TensorView> given = views(in), made = views(out);
  const auto run = [&](std::string_view op, const TensorView& first, const TensorView& second,
                       const TensorView& result) {
    const TensorView inputs[] = {first, second}, outputs[] = {result};
    Call call{.node = node, .inputs = inputs, .outputs = outputs};
    const kernels::Kernel& kernel = kernels::find(op, sizeof(T) == 4 ? DType::f32 : DType::f64);
    const Scratch scratch = make_scratch(kernel.scratch_bytes(exec, call));
    call.scratch = scratch.get();
    kernel.run(exec, call);
  };
  run("conv2d", given[0], given[1], made[2]);
  run("conv2d_grad_input", given[2], given[1], made[0]);
  run("conv2d_grad_weight", given[2], given[0], made[1]);
  return out;
}

template<class A, class B>
void expect_close(const Tensors<A>& a, const Tensors<B>& b, double tolerance) {
  EXPECT_LE(relative_error(a.y, b.y), tolerance) << "forward";
  EXPECT_LE(relative_error(a.x, b.x), tolerance) << "backward data";
  EXPECT_LE(relative_error(a.w, b.w), tolerance) << "backward weights";
}

TEST(Conv2dReference, EqualsTheDefinition) {
  const Exec exec(1);
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) {
    const Conv c = random_conv(random);
    SCOPED_TRACE(text(c));
    const Tensors<double> in = random_tensors<double>(c), exact = naive(c, in);
    expect_close(reference(exec, c, in), exact, 1e-13);
    expect_close(reference(exec, c, random_tensors<float>(c)), exact, 1e-6);
  }
}

TEST(Conv2dReference, SumsInTheSameOrderForAnyThreads) {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const Conv c = random_conv(random);
    const Tensors<double> in = random_tensors<double>(c);
    const Exec one(1);
    const Tensors<double> a = reference(one, c, in);
    const Exec three(3);
    const Tensors<double> b = reference(three, c, in);
    EXPECT_EQ(a.x, b.x);
    EXPECT_EQ(a.w, b.w);
    EXPECT_EQ(a.y, b.y);
  }
}

TEST(Conv2d, EqualsTheReferenceForRandomShapes) {
  std::mt19937 random(3);
  for (int threads : {1, 2}) {
    const Exec exec(threads);
    for (int round = 0; round < 60; ++round) {
      const Conv c = random_conv(random);
      SCOPED_TRACE(text(c));
      const Tensors<double> exact = table_rows(exec, c, random_tensors<double>(c));
      expect_close(table_rows(exec, c, random_tensors<float>(c)), exact, 1e-5);
    }
  }
}

TEST(Conv2d, EqualsTheReferenceForEveryChannelCount) {
  const Exec exec(1);
  for (std::int64_t channels = 1; channels <= 67; ++channels) {
    const Conv c{.batch = 2,
                 .in_channels = channels,
                 .out_channels = 68 - channels,
                 .height = 5,
                 .width = 6,
                 .kernel_h = 3,
                 .kernel_w = 3,
                 .padding_h = 1,
                 .padding_w = 1};
    SCOPED_TRACE(text(c));
    const Tensors<double> exact = table_rows(exec, c, random_tensors<double>(c));
    expect_close(table_rows(exec, c, random_tensors<float>(c)), exact, 1e-5);
  }
}

TEST(Conv2d, EqualsTheReferenceForNetworksLayersAndIsNeverTheLibrarysReference) {
  const Exec exec(2);
  for (const Conv& c : network_convs()) {
    SCOPED_TRACE(text(c));
    const Tensors<double> exact = table_rows(exec, c, random_tensors<double>(c));
    expect_close(table_rows(exec, c, random_tensors<float>(c)), exact, 1e-5);
    for (ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
      const std::string implementation = device::conv_implementation(exec, c, pass);
      EXPECT_FALSE(implementation.starts_with("ref")) << implementation;
    }
  }
}

/// Groups narrower than a vector are computed several at a time, not as tiny products of matrices.
TEST(Conv2d, NarrowGroupsAreJoined) {
  const Exec exec(2);
  const auto grouped = [](std::int64_t in, std::int64_t out, std::int64_t groups) {
    return Conv{.batch = 2,
                .in_channels = in,
                .out_channels = out,
                .groups = groups,
                .height = 9,
                .width = 7,
                .kernel_h = 3,
                .kernel_w = 2,
                .stride_h = 2,
                .padding_h = 1,
                .padding_w = 1};
  };
  for (const Conv& c : {grouped(64, 64, 16), grouped(32, 64, 32), grouped(48, 24, 12), grouped(12, 12, 2)}) {
    SCOPED_TRACE(text(c));
    const Tensors<double> exact = table_rows(exec, c, random_tensors<double>(c));
    expect_close(table_rows(exec, c, random_tensors<float>(c)), exact, 1e-5);
  }
  for (const Conv& c : {grouped(64, 64, 16), grouped(32, 64, 32)}) {
    const std::string implementation = device::conv_implementation(exec, c, ConvPass::forward);
    EXPECT_EQ(implementation.find("gemm"), std::string::npos) << implementation;
  }
}

TEST(Conv2d, RunsAgainWithTheSameBits) {
  const Exec exec(2);
  const Conv c = network_convs()[1];
  const Tensors<float> in = random_tensors<float>(c), a = table_rows(exec, c, in), b = table_rows(exec, c, in);
  EXPECT_EQ(a.x, b.x);
  EXPECT_EQ(a.w, b.w);
  EXPECT_EQ(a.y, b.y);
}

template<class T>
void empty_blocks_give_zeros() {
  const Exec exec(2);
  for (const Conv& c : support::empty_convs()) {
    SCOPED_TRACE(text(c));
    const Tensors<T> out = table_rows(exec, c, random_tensors<T>(c));
    EXPECT_EQ(out.x, std::vector<T>(c.input_size()));
    EXPECT_EQ(out.w, std::vector<T>(c.weight_size()));
    EXPECT_EQ(out.y, std::vector<T>(c.output_size()));
  }
}

TEST(Conv2d, EmptyBlocksGiveZeros) {
  empty_blocks_give_zeros<float>();
  empty_blocks_give_zeros<double>();
}

// A rank holds groups 2 and 3 of 5, and rows 1 to 3 of 4.
TEST(Conv2d, WorksOnABlockOfGroups) {
  const Exec exec(1);
  const Conv local{.batch = 3,
                   .in_channels = 4,
                   .out_channels = 6,
                   .groups = 2,
                   .height = 5,
                   .width = 4,
                   .kernel_h = 3,
                   .kernel_w = 3};
  const Tensors<float> in = random_tensors<float>(local);
  Tensors<float> out = in;
  Conv global = local;
  global.groups = 5;
  const graph::Node node = node_of(global);
  const TensorView x{in.x.empty() ? nullptr : const_cast<float*>(in.x.data()),
                     DType::f32,
                     {{1, 4, 0, 0}, {3, 4, 5, 4}},
                     {4, 10, 5, 4},
                     20};
  const TensorView w{const_cast<float*>(in.w.data()), DType::f32, {{6, 0, 0, 0}, {6, 2, 3, 3}}, {15, 2, 3, 3}, 1};
  const TensorView y{out.y.data(), DType::f32, {{1, 6, 0, 0}, {3, 6, 3, 2}}, {4, 15, 3, 2}, 6};
  const TensorView inputs[] = {x, w}, outputs[] = {y};
  Call call{.node = node, .inputs = inputs, .outputs = outputs};
  EXPECT_EQ(kernels::forward_conv(call), local);
  const Scratch scratch = make_scratch(kernels::scratch_conv2d(exec, call));
  call.scratch = scratch.get();
  kernels::run_conv2d(exec, call);
  const Tensors<double> exact = naive(local, random_tensors<double>(local));
  EXPECT_LE(relative_error(out.y, exact.y), 1e-6);
}

TEST(Conv2d, RefusesBlocksThatDoNotFit) {
  const Exec exec(1);
  const Conv c{.batch = 2, .in_channels = 4, .out_channels = 6, .height = 5, .width = 5, .kernel_h = 3, .kernel_w = 3};
  const Tensors<float> t = random_tensors<float>(c);
  const graph::Node node = node_of(c);
  const TensorView x = view_of(t.x, {2, 4, 5, 5}, 25), w = view_of(t.w, {6, 4, 3, 3}, 1),
                   y = view_of(t.y, {2, 6, 3, 3}, 9);
  TensorView plain = x, small = y;
  plain.spatial = 1;
  small.box.extents[1] = 5;
  for (const auto& [first, result] : {std::pair{plain, y}, std::pair{x, small}}) {
    const TensorView inputs[] = {first, w}, outputs[] = {result};
    EXPECT_THROW(kernels::scratch_conv2d(exec, {.node = node, .inputs = inputs, .outputs = outputs}), Bug);
  }
}

} // namespace
