#include "kernels/conv2d.hpp"

#include "base/error.hpp"
#include "kernels/conv2d_reference.hpp"

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

std::string text(const Conv& c) {
  return fmt::format("b{} c{} o{} g{} {}x{} k{}x{} s{}x{} p{}x{} d{}x{}", c.batch, c.in_channels, c.out_channels,
                     c.groups, c.height, c.width, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.padding_h,
                     c.padding_w, c.dilation_h, c.dilation_w);
}

template<class T>
std::vector<T> draw(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-1, 1); // floats, so that float and double runs read the same numbers
  std::vector<T> out(n);
  for (T& x : out) x = T(value(random));
  return out;
}

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

/// x, w, y of a convolution, or their gradients: whichever a pass does not read it writes.
template<class T>
struct Tensors {
  std::vector<T> x, w, y;
};

template<class T>
Tensors<T> random_tensors(const Conv& c) {
  return {draw<T>(c.input_size(), 1), draw<T>(c.weight_size(), 2), draw<T>(c.output_size(), 3)};
}

/// The definition, in logical terms: no blocks, no order of loops to get wrong.
Tensors<double> naive(const Conv& c, const Tensors<double>& in) {
  Tensors<double> out{std::vector<double>(in.x.size()), std::vector<double>(in.w.size()),
                      std::vector<double>(in.y.size())};
  const std::int64_t oh = c.out_height(), ow = c.out_width(), cg = c.in_channels / c.groups,
                     og = c.out_channels / c.groups;
  for (std::int64_t b = 0; b < c.batch; ++b)
    for (std::int64_t o = 0; o < c.out_channels; ++o)
      for (std::int64_t i = 0; i < oh; ++i)
        for (std::int64_t j = 0; j < ow; ++j)
          for (std::int64_t k = 0; k < cg; ++k)
            for (std::int64_t r = 0; r < c.kernel_h; ++r)
              for (std::int64_t s = 0; s < c.kernel_w; ++s) {
                const std::int64_t h = i * c.stride_h - c.padding_h + r * c.dilation_h;
                const std::int64_t w = j * c.stride_w - c.padding_w + s * c.dilation_w;
                if (h < 0 || h >= c.height || w < 0 || w >= c.width) continue;
                const std::int64_t channel = o / og * cg + k;
                const std::int64_t at_x = ((b * c.height + h) * c.width + w) * c.in_channels + channel;
                const std::int64_t at_w = ((o * cg + k) * c.kernel_h + r) * c.kernel_w + s;
                const std::int64_t at_y = ((b * oh + i) * ow + j) * c.out_channels + o;
                out.y[at_y] += in.x[at_x] * in.w[at_w];
                out.x[at_x] += in.y[at_y] * in.w[at_w];
                out.w[at_w] += in.y[at_y] * in.x[at_x];
              }
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
double relative_error(const std::vector<A>& a, const std::vector<B>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

template<class A, class B>
void expect_close(const Tensors<A>& a, const Tensors<B>& b, double tolerance) {
  EXPECT_LE(relative_error(a.y, b.y), tolerance) << "forward";
  EXPECT_LE(relative_error(a.x, b.x), tolerance) << "backward data";
  EXPECT_LE(relative_error(a.w, b.w), tolerance) << "backward weights";
}

/// Small convolutions with everything drawn, odd and prime extents included.
Conv random_conv(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (;;) {
    Conv c{.batch = pick(1, 4),
           .groups = pick(0, 2) ? 1 : pick(2, 5),
           .height = pick(1, 13),
           .width = pick(1, 13),
           .kernel_h = pick(1, 5),
           .kernel_w = pick(1, 5),
           .stride_h = pick(1, 3),
           .stride_w = pick(1, 3),
           .padding_h = pick(0, 2),
           .padding_w = pick(0, 2),
           .dilation_h = pick(1, 2),
           .dilation_w = pick(1, 2)};
    c.in_channels = c.groups * (pick(0, 3) ? pick(1, 67 / c.groups) : 1);
    c.out_channels = c.groups * pick(1, 67 / c.groups);
    const bool fits = c.height + 2 * c.padding_h > c.dilation_h * (c.kernel_h - 1) &&
                      c.width + 2 * c.padding_w > c.dilation_w * (c.kernel_w - 1) && c.padding_h < c.kernel_h &&
                      c.padding_w < c.kernel_w;
    if (fits && c.output_size() * c.weight_size() / c.out_channels < 2'000'000) return c;
  }
}

/// Convolutions as networks have them.
std::vector<Conv> network_convs() {
  return {
      {.batch = 2,
       .in_channels = 3,
       .out_channels = 64,
       .height = 32,
       .width = 32,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 64,
       .out_channels = 64,
       .height = 28,
       .width = 28,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 1,
       .in_channels = 3,
       .out_channels = 64,
       .height = 63,
       .width = 63,
       .kernel_h = 11,
       .kernel_w = 11,
       .stride_h = 4,
       .stride_w = 4,
       .padding_h = 2,
       .padding_w = 2},
      {.batch = 2,
       .in_channels = 64,
       .out_channels = 192,
       .height = 13,
       .width = 13,
       .kernel_h = 5,
       .kernel_w = 5,
       .padding_h = 2,
       .padding_w = 2},
      {.batch = 2, .in_channels = 64, .out_channels = 128, .height = 14, .width = 14, .stride_h = 2, .stride_w = 2},
      {.batch = 2, .in_channels = 96, .out_channels = 32, .height = 14, .width = 14},
      {.batch = 2,
       .in_channels = 32,
       .out_channels = 32,
       .groups = 32,
       .height = 14,
       .width = 14,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 32,
       .out_channels = 64,
       .groups = 4,
       .height = 14,
       .width = 14,
       .kernel_h = 3,
       .kernel_w = 3,
       .stride_h = 2,
       .stride_w = 2,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 16,
       .out_channels = 24,
       .height = 16,
       .width = 16,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 2,
       .padding_w = 2,
       .dilation_h = 2,
       .dilation_w = 2},
      {.batch = 3, .in_channels = 16, .out_channels = 40, .height = 6, .width = 6, .kernel_h = 6, .kernel_w = 6},
      {.batch = 5,
       .in_channels = 1,
       .out_channels = 16,
       .height = 8,
       .width = 8,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
      {.batch = 2,
       .in_channels = 37,
       .out_channels = 53,
       .height = 11,
       .width = 7,
       .kernel_h = 3,
       .kernel_w = 3,
       .padding_h = 1,
       .padding_w = 1},
  };
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
  const Conv full{
      .batch = 2, .in_channels = 4, .out_channels = 6, .height = 5, .width = 5, .kernel_h = 3, .kernel_w = 3};
  Conv no_batch = full, no_input = full, no_output = full;
  no_batch.batch = no_input.in_channels = no_output.out_channels = 0;
  for (const Conv& c : {no_batch, no_input, no_output}) {
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
