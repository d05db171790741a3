#include "kernels/dense.hpp"

#include "base/error.hpp"
#include "kernels/dense_reference.hpp"
#include "support/conv_cases.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace {

using namespace soybean;
using device::Exec;
using device::Matmul;
using device::TensorView;
using kernels::Call;
using support::draw;
using support::relative_error;
using support::Tensors;
using Sizes = support::Dense;

template<class T>
Tensors<T> random_tensors(const Sizes& s) {
  return {draw<T>(s.batch * s.in, 1), draw<T>(s.out * s.in, 2), draw<T>(s.batch * s.out, 3)};
}

Tensors<double> naive(const Sizes& s, const Tensors<double>& in) {
  Tensors<double> out{std::vector<double>(in.x.size()), std::vector<double>(in.w.size()),
                      std::vector<double>(in.y.size())};
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t n = 0; n < s.out; ++n)
      for (std::int64_t k = 0; k < s.in; ++k) {
        out.y[b * s.out + n] += in.x[b * s.in + k] * in.w[n * s.in + k];
        out.x[b * s.in + k] += in.y[b * s.out + n] * in.w[n * s.in + k];
        out.w[n * s.in + k] += in.y[b * s.out + n] * in.x[b * s.in + k];
      }
  return out;
}

template<class T>
TensorView view_of(const std::vector<T>& data, const Shape& shape, std::int64_t spatial) {
  return {.data = const_cast<T*>(data.data()),
          .dtype = sizeof(T) == 4 ? DType::f32 : DType::f64,
          .box = whole(shape),
          .global = shape,
          .spatial = spatial};
}

template<class T>
Tensors<T> table_rows(const Exec& exec, const Sizes& s, const Tensors<T>& in) {
  Tensors<T> out{std::vector<T>(in.x.size(), T(7)), std::vector<T>(in.w.size(), T(7)),
                 std::vector<T>(in.y.size(), T(7))};
  graph::Node node;
  node.name = "fc";
  const auto views = [&](const Tensors<T>& t) {
    return std::vector<TensorView>{view_of(t.x, {s.batch, s.in}, s.spatial), view_of(t.w, {s.out, s.in}, s.spatial),
                                   view_of(t.y, {s.batch, s.out}, 1)};
  };
  const std::vector<TensorView> given = views(in), made = views(out);
  const auto run = [&](std::string_view op, const TensorView& first, const TensorView& second,
                       const TensorView& result) {
    const TensorView inputs[] = {first, second}, outputs[] = {result};
    Call call{.node = node, .inputs = inputs, .outputs = outputs};
    const kernels::Kernel& kernel = kernels::find(op, sizeof(T) == 4 ? DType::f32 : DType::f64);
    std::vector<std::byte> scratch(kernel.scratch_bytes ? kernel.scratch_bytes(exec, call) + 1 : 1);
    call.scratch = scratch.data();
    kernel.run(exec, call);
  };
  run("dense", given[0], given[1], made[2]);
  run("dense_grad_input", given[2], given[1], made[0]);
  run("dense_grad_weight", given[2], given[0], made[1]);
  return out;
}

template<class A, class B>
void expect_close(const Tensors<A>& a, const Tensors<B>& b, double tolerance) {
  EXPECT_LE(relative_error(a.y, b.y), tolerance) << "forward";
  EXPECT_LE(relative_error(a.x, b.x), tolerance) << "gradient of the input";
  EXPECT_LE(relative_error(a.w, b.w), tolerance) << "gradient of the weights";
}

TEST(Dense, EqualsTheDefinition) {
  for (int threads : {1, 2}) {
    const Exec exec(threads);
    for (const Sizes& s : support::dense_layers()) {
      SCOPED_TRACE(fmt::format("batch {} in {} out {}", s.batch, s.in, s.out));
      const Tensors<double> exact = naive(s, random_tensors<double>(s));
      expect_close(table_rows(exec, s, random_tensors<double>(s)), exact, 1e-13);
      expect_close(table_rows(exec, s, random_tensors<float>(s)), exact, 1e-5);
    }
  }
}

TEST(Dense, ReferenceSumsInTheSameOrderForAnyThreads) {
  const Sizes s{33, 517, 131};
  const Tensors<double> in = random_tensors<double>(s);
  const Exec one(1);
  const Tensors<double> a = table_rows(one, s, in);
  const Exec three(3);
  const Tensors<double> b = table_rows(three, s, in);
  EXPECT_EQ(a.x, b.x);
  EXPECT_EQ(a.w, b.w);
  EXPECT_EQ(a.y, b.y);
}

TEST(Dense, AllTranspositionsOfTheProductAgree) {
  const Exec exec(2);
  for (const Matmul& s : support::products()) {
    const std::vector<double> a = draw<double>(s.m * s.k, 4), b = draw<double>(s.k * s.n, 5);
    const std::vector<float> a32(a.begin(), a.end()), b32(b.begin(), b.end());
    const std::vector<double> exact = support::naive_product(s, a32, b32);
    std::vector<double> c(s.m * s.n);
    std::vector<float> c32(s.m * s.n), oracle32(s.m * s.n);
    std::vector<std::byte> scratch(device::matmul_scratch_bytes(exec, s) + 1);
    device::matmul(exec, s, a32.data(), b32.data(), c32.data(), scratch.data());
    kernels::matmul_reference(exec, s, a.data(), b.data(), c.data());
    kernels::matmul_reference(exec, s, a32.data(), b32.data(), oracle32.data());
    EXPECT_LE(relative_error(c, exact), 1e-14);
    EXPECT_LE(relative_error(c32, exact), 1e-6);
    EXPECT_LE(relative_error(oracle32, exact), 1e-6);
  }
}

template<class T>
void empty_blocks_give_zeros() {
  const Exec exec(2);
  for (const Sizes& s : {Sizes{0, 5, 3}, {4, 0, 3}, {4, 5, 0}}) {
    const Tensors<T> out = table_rows(exec, s, random_tensors<T>(s));
    EXPECT_EQ(out.x, std::vector<T>(s.batch * s.in));
    EXPECT_EQ(out.w, std::vector<T>(s.out * s.in));
    EXPECT_EQ(out.y, std::vector<T>(s.batch * s.out));
  }
}

TEST(Dense, EmptyBlocksGiveZeros) {
  empty_blocks_give_zeros<float>();
  empty_blocks_give_zeros<double>();
}

TEST(Dense, RefusesBlocksThatDoNotFit) {
  const Sizes s{4, 6, 3};
  const Tensors<float> t = random_tensors<float>(s);
  graph::Node node;
  node.name = "fc";
  const TensorView x = view_of(t.x, {4, 6}, 1), w = view_of(t.w, {3, 6}, 1), y = view_of(t.y, {4, 3}, 1);
  TensorView other_order = x, short_x = x;
  other_order.spatial = 2;
  short_x.box.extents[1] = 5;
  for (const TensorView& first : {other_order, short_x}) {
    const TensorView inputs[] = {first, w}, outputs[] = {y};
    EXPECT_THROW(kernels::dense_product({.node = node, .inputs = inputs, .outputs = outputs}), Bug);
  }
}

} // namespace
