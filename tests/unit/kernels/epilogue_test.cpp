#include "kernels/epilogue.hpp"

#include "base/error.hpp"
#include "support/conv_cases.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace soybean;
using device::Exec;
using device::TensorView;
using kernels::Call;
using support::draw;
using support::relative_error;

graph::Node make_node(const std::string& op, graph::Attributes attributes = {}) {
  return {.name = op + "_node", .op = op, .attributes = std::move(attributes), .inputs = {0, 1}, .outputs = {2}};
}

struct Case {
  graph::Node node;
  Shape x, w, y;
};

std::vector<Case> cases() {
  const graph::Attributes attributes{{"kernel", std::vector<std::int64_t>{3, 2}},
                                     {"stride", std::vector<std::int64_t>{1, 2}},
                                     {"padding", std::vector<std::int64_t>{1, 0}},
                                     {"dilation", std::vector<std::int64_t>{1, 1}},
                                     {"groups", std::int64_t{1}}};
  return {{make_node("dense"), {5, 7}, {9, 7}, {5, 9}},
          {make_node("conv2d", attributes), {2, 3, 5, 6}, {9, 3, 3, 2}, {2, 9, 5, 3}}};
}

TensorView view_of(std::vector<float>& data, const Shape& shape, std::int64_t spatial = 1) {
  return {.data = data.data(), .dtype = DType::f32, .box = whole(shape), .global = shape, .spatial = spatial};
}

/// Images are stored with their channels innermost.
std::int64_t spatial_of(const Shape& shape) {
  return shape.size() == 4 ? shape[2] * shape[3] : 1;
}

/// The result of one call with an epilogue.
std::vector<float> run(const Exec& exec, const Case& c, const std::vector<const graph::Node*>& epilogue,
                       std::vector<float> x) {
  std::vector<float> w = draw<float>(volume(c.w), 2), bias = draw<float>(c.y[1], 3), y(volume(c.y), 7.0f);
  std::vector<TensorView> inputs{view_of(x, c.x, spatial_of(c.x)), view_of(w, c.w)};
  for (const graph::Node* node : epilogue)
    if (node->op == "bias") inputs.push_back(view_of(bias, {c.y[1]}));
  const TensorView outputs[] = {view_of(y, c.y, spatial_of(c.y))};
  const kernels::Kernel& kernel = kernels::find(c.node.op, DType::f32);
  EXPECT_TRUE(kernel.takes_epilogue);
  Call call{.node = c.node, .epilogue = epilogue, .inputs = inputs, .outputs = outputs};
  std::vector<std::byte> scratch(static_cast<std::size_t>(kernel.scratch_bytes(exec, call)) + 64);
  void* aligned = scratch.data();
  std::size_t space = scratch.size();
  call.scratch = std::align(64, 1, aligned, space);
  kernel.run(exec, call);
  return y;
}

TEST(Epilogue, IsWhatItsNodesSay) {
  const graph::Node bias = make_node("bias"), relu = make_node("relu");
  for (const int threads : {1, 2}) {
    const Exec exec(threads);
    for (const Case& c : cases()) {
      const std::vector<float> x = draw<float>(volume(c.x), 1), shift = draw<float>(c.y[1], 3);
      const std::vector<float> plain = run(exec, c, {}, x);
      for (const auto& epilogue : {std::vector{&bias}, std::vector{&relu}, std::vector{&bias, &relu}}) {
        SCOPED_TRACE(c.node.op + " " + epilogue[0]->op + std::to_string(epilogue.size()));
        std::vector<double> expected(plain.begin(), plain.end());
        for (std::size_t i = 0; i < plain.size(); ++i) { // channels are innermost in both
          if (epilogue[0] == &bias) expected[i] += shift[i % shift.size()];
          if (epilogue.back() == &relu) expected[i] = std::max(expected[i], 0.0);
        }
        EXPECT_LE(relative_error(run(exec, c, epilogue, x), expected), 1e-6);
      }
    }
  }
}

// As in PyTorch: a run that has gone wrong must not look sound.
TEST(Epilogue, ReluLetsNaNThrough) {
  const graph::Node bias = make_node("bias"), relu = make_node("relu");
  const Exec exec(1);
  for (const Case& c : cases()) {
    std::vector<float> x = draw<float>(volume(c.x), 1);
    x[0] = std::numeric_limits<float>::quiet_NaN();
    for (const auto& epilogue : {std::vector{&relu}, std::vector{&bias, &relu}})
      EXPECT_TRUE(std::isnan(run(exec, c, epilogue, x)[0])) << c.node.op;
  }
}

TEST(Epilogue, OthersAreRefused) {
  const graph::Node bias = make_node("bias"), relu = make_node("relu"), tanh = make_node("tanh");
  const Exec exec(1);
  const Case c = cases()[0];
  const std::vector<float> x = draw<float>(volume(c.x), 1);
  EXPECT_THROW(run(exec, c, {&relu, &bias}, x), Bug);
  EXPECT_THROW(run(exec, c, {&bias, &bias}, x), Bug);
  EXPECT_THROW(run(exec, c, {&tanh}, x), Bug);
}

} // namespace
