// Activations, sums, bias, flatten and update on values worked out by hand; results do not depend on threads.
#include "base/error.hpp"
#include "base/philox.hpp"
#include "kernels/layout.hpp"
#include "unit/kernels/blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace soybean::kernels_test {
namespace {

void expect_near(const Block& block, const std::vector<double>& expected) {
  const std::vector<double> values = logical(block);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 2e-6) << i;
}

class Elementwise : public ::testing::TestWithParam<DType> {
protected:
  Spec of(Shape shape) const { return {std::move(shape), 1, GetParam()}; }
};

TEST_P(Elementwise, Activations) {
  const Block x = block(of({4}), {-2, 0, 0.5, 3}), y = block(of({4}));
  run({"relu", {}, GetParam()}, {&x}, {&y});
  expect_near(y, {0, 0, 0.5, 3});
  const Block wide = block(of({4}), {-2, 0.5, 6, 7});
  run({"relu6", {}, GetParam()}, {&wide}, {&y});
  expect_near(y, {0, 0.5, 6, 6});
  run({"tanh", {}, GetParam()}, {&x}, {&y});
  expect_near(y, {-0.9640275801, 0, 0.4621171573, 0.9950547537});
  run({"sigmoid", {}, GetParam()}, {&x}, {&y});
  expect_near(y, {0.1192029220, 0.5, 0.6224593312, 0.9525741268});
}

TEST_P(Elementwise, GradientsOfActivationsFromTheirResults) {
  const Block dy = block(of({3}), {2, 4, 8}), y = block(of({3}), {-0.5, 0, 0.5}), dx = block(of({3}));
  run({"relu_grad", {}, GetParam()}, {&dy, &y}, {&dx});
  expect_near(dx, {0, 0, 8});
  const Block y6 = block(of({3}), {0, 3, 6});
  run({"relu6_grad", {}, GetParam()}, {&dy, &y6}, {&dx});
  expect_near(dx, {0, 4, 0}); // as torch.nn.functional.relu6
  run({"tanh_grad", {}, GetParam()}, {&dy, &y}, {&dx});
  expect_near(dx, {1.5, 4, 6});
  run({"sigmoid_grad", {}, GetParam()}, {&dy, &y}, {&dx});
  expect_near(dx, {-1.5, 0, 2});
}

TEST_P(Elementwise, ReluAndItsGradientLetNanThrough) {
  const Block x = block(of({1}), {NAN}), one = block(of({1}), {1}), y = block(of({1}));
  run({"relu", {}, GetParam()}, {&x}, {&y});
  EXPECT_TRUE(std::isnan(y.get(0)));
  run({"relu_grad", {}, GetParam()}, {&one, &x}, {&y});
  EXPECT_EQ(y.get(0), 1);
}

TEST_P(Elementwise, SumsAndProducts) {
  const Block a = block(of({2}), {1, 2}), b = block(of({2}), {10, 20}), c = block(of({2}), {100, 200});
  const Block y = block(of({2}));
  run({"add", {}, GetParam()}, {&a, &b}, {&y});
  expect_near(y, {11, 22});
  run({"add", {}, GetParam()}, {&a, &b, &c}, {&y});
  expect_near(y, {111, 222});
  run({"add", {}, GetParam()}, {&a, &a}, {&y});
  expect_near(y, {2, 4});
  run({"mul", {}, GetParam()}, {&b, &c}, {&y});
  expect_near(y, {1000, 4000});
}

TEST_P(Elementwise, BiasOfImagesAndOfVectors) {
  const Block bias = block(of({2}), {10, 20}), sums = block(of({2}));
  const Block x = block(images({1, 2, 1, 2}, GetParam()), {1, 2, 3, 4}), y = block(images({1, 2, 1, 2}, GetParam()));
  run({"bias", {}, GetParam()}, {&x, &bias}, {&y});
  expect_near(y, {11, 12, 23, 24});
  run({"bias_grad", {}, GetParam()}, {&x}, {&sums});
  expect_near(sums, {3, 7});
  const Block v = block(of({2, 2}), {1, 2, 3, 4}), w = block(of({2, 2}));
  run({"bias", {}, GetParam()}, {&v, &bias}, {&w});
  expect_near(w, {11, 22, 13, 24});
  run({"bias_grad", {}, GetParam()}, {&v}, {&sums});
  expect_near(sums, {4, 6});
}

TEST_P(Elementwise, BiasGradientOfNoRowsIsZero) {
  const Block dy = block(of({0, 3})), sums = block(of({3}));
  run({"bias_grad", {}, GetParam()}, {&dy}, {&sums});
  expect_near(sums, {0, 0, 0});
}

TEST_P(Elementwise, FlattenKeepsLogicalOrder) {
  std::vector<double> values(24);
  std::iota(values.begin(), values.end(), 0);
  const Block x = block(images({2, 3, 2, 2}, GetParam()), values);
  const Block y = block({{2, 12}, 4, GetParam()}), back = block(images({2, 3, 2, 2}, GetParam()));
  run({"flatten", {}, GetParam()}, {&x}, {&y});
  EXPECT_EQ(logical(y), values);
  run({"flatten_grad", {}, GetParam()}, {&y}, {&back});
  EXPECT_EQ(logical(back), values);
}

/// torch.optim.SGD, two steps from w = 1, gradients 0.5 and 0.25, lr 0.1, momentum 0.9, weight_decay 0.1.
TEST_P(Elementwise, TwoStepsOfSgd) {
  struct Expected {
    double momentum;
    bool nesterov;
    double first, second;
  };
  for (const Expected& e :
       {Expected{0, false, 0.94, 0.9056}, Expected{0.9, false, 0.94, 0.8516}, Expected{0.9, true, 0.886, 0.773066}}) {
    Block w = block(of({1}), {1}), v = block(of({1}), {0});
    const Block h = block({{2}}, {0.1, 0});
    double gradient = 0.5;
    for (double expected : {e.first, e.second}) {
      const Block g = block(of({1}), {gradient}), w_next = block(of({1})), v_next = block(of({1}));
      const graph::Attributes attributes{
          {"momentum", e.momentum}, {"weight_decay", 0.1}, {"nesterov", std::int64_t{e.nesterov}}};
      if (e.momentum == 0)
        run({"sgd_update", attributes, GetParam()}, {&w, &g, &h}, {&w_next});
      else
        run({"sgd_update", attributes, GetParam()}, {&w, &g, &h, &v}, {&w_next, &v_next});
      EXPECT_NEAR(w_next.get(0), expected, 1e-6) << e.momentum << e.nesterov;
      w = w_next.copy();
      v = v_next.copy();
      gradient = 0.25;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Elementwise, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

std::vector<double> noise(std::int64_t n, std::uint64_t stream) {
  std::vector<double> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = philox::uniform({1, stream, 0}, i) - 0.5;
  return values;
}

/// Large enough for the loops to use threads; sums must come out the same to the bit.
TEST(Threads, DoNotChangeResults) {
  const Spec spec = images({8, 70, 12, 12}, DType::f32);
  const std::int64_t n = volume(spec.shape);
  const Block x = block(spec, noise(n, 1)), dy = block(images({8, 70, 6, 6}, DType::f32), noise(n / 4, 2));
  const graph::Attributes window{{"kernel", Shape{3, 3}}, {"stride", Shape{2, 2}}, {"padding", Shape{1, 1}}};
  const Block logits = block({{64, 1260}, 1, DType::f32}, noise(n, 3)),
              labels = block({{64}, 1, DType::i32}, std::vector<double>(64, 7)),
              weights = block({{64}, 1, DType::f32}, std::vector<double>(64, 0.1)), h = block({{2}}, {0, 1});
  std::vector<std::vector<double>> results[2];
  for (int threads : {1, 2}) {
    const Block sums = block({{70}, 1, DType::f32}), dx = block(spec), loss = block({{}, 1, DType::f32}),
                correct = block({{}, 1, DType::f32}), dropped = block(spec);
    run({"bias_grad", {}, DType::f32, true, threads}, {&x}, {&sums});
    run({"max_pool_grad", window, DType::f32, true, threads}, {&dy, &x}, {&dx});
    run({"softmax_cross_entropy", {}, DType::f32, true, threads}, {&logits, &labels, &weights}, {&loss, &correct});
    const graph::Attributes half{{"rate", 0.5}, {"seed", std::int64_t{1}}, {"stream", std::int64_t{2}}};
    run({"dropout", half, DType::f32, true, threads}, {&x, &h}, {&dropped});
    for (const Block* b : {&sums, &dx, &loss, &dropped}) results[threads - 1].push_back(logical(*b));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Layout, LogicalIndexAgreesWithPositions) {
  struct Given {
    Shape shape;
    std::int64_t spatial;
    Box box;
  };
  for (const Given& g : {Given{{4, 6, 2, 3}, 6, {{1, 2, 0, 0}, {2, 3, 2, 3}}}, Given{{4, 12}, 3, {{1, 3}, {3, 6}}},
                         Given{{4, 6, 2, 3}, 1, {{1, 2, 0, 0}, {2, 3, 2, 3}}}, Given{{7}, 1, {{2}, {4}}},
                         Given{{}, 1, {{}, {}}}, Given{{4, 5}, 1, {{1, 0}, {2, 5}}}}) {
    const Block b(tensor({g.shape, g.spatial}), g.box);
    const kernels::LogicalIndex index = kernels::logical_index(b.view());
    ASSERT_EQ(index.rows * index.inner, b.size());
    Shape position(g.shape.size(), 0);
    for (std::int64_t n = 0; n < b.size(); ++n) {
      std::int64_t expected = 0;
      for (std::size_t d = 0; d < g.shape.size(); ++d)
        expected = expected * g.shape[d] + g.box.offsets[d] + position[d];
      const std::int64_t at = kernels::physical_offset(b.view(), position);
      EXPECT_EQ(index.row_base(at / index.inner) + at % index.inner * index.inner_stride, expected);
      for (int d = static_cast<int>(g.shape.size()) - 1; d >= 0 && ++position[d] == g.box.extents[d]; --d)
        position[d] = 0;
    }
  }
}

TEST(Layout, MismatchedBlocksAreBugs) {
  const Block a = block({{2, 3}, 1, DType::f32}), b = block({{3, 2}, 1, DType::f32}), d = block({{2, 3}});
  EXPECT_THROW(run({"relu", {}, DType::f32}, {&a}, {&b}), Bug);
  EXPECT_THROW(run({"relu", {}, DType::f32}, {&d}, {&d}), Bug);
  EXPECT_THROW(run({"relu", {}, DType::f64}, {&a}, {&a}), Bug);
}

} // namespace
} // namespace soybean::kernels_test
