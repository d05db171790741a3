// The loss on values worked out by hand, and its edge cases.
#include "base/error.hpp"
#include "unit/kernels/blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace soybean::kernels_test {
namespace {

struct Outcome {
  double loss, correct;
  std::vector<double> gradient;
};

struct Rows {
  Spec logits;
  std::vector<double> values, labels, weights;
};

Outcome evaluate(const Rows& rows) {
  const DType type = rows.logits.dtype;
  const Shape batch{rows.logits.shape[0]};
  const Block logits = block(rows.logits, rows.values), labels = block({batch, 1, DType::i32}, rows.labels),
              weights = block({batch, 1, type}, rows.weights);
  const Block loss = block({{}, 1, type}), correct = block({{}, 1, type}), gradient = block(rows.logits);
  run({"softmax_cross_entropy", {}, type}, {&logits, &labels, &weights}, {&loss, &correct});
  run({"softmax_cross_entropy_grad", {}, type}, {&logits, &labels, &weights}, {&gradient});
  return {loss.get(0), correct.get(0), logical(gradient)};
}

class Loss : public ::testing::TestWithParam<DType> {
protected:
  Spec of(Shape shape, std::int64_t spatial = 1) const { return {std::move(shape), spatial, GetParam()}; }
};

TEST_P(Loss, IsTheWeightedCrossEntropyOfTheSoftmax) {
  const Outcome o = evaluate({of({2, 2}), {0, std::log(3.0), 1, 1}, {1, 0}, {0.5, 0.25}});
  EXPECT_NEAR(o.loss, 0.5 * std::log(4.0 / 3) + 0.25 * std::log(2.0), 1e-6);
  EXPECT_EQ(o.correct, 2);
  const std::vector<double> expected{0.125, -0.125, -0.125, 0.125};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(o.gradient[i], expected[i], 1e-6) << i;
}

TEST_P(Loss, SurvivesLogitsWhoseExponentialsOverflow) {
  const Outcome o = evaluate({of({1, 3}), {1000, -1000, 990}, {0}, {1}});
  EXPECT_NEAR(o.loss, std::log1p(std::exp(-10.0)), 1e-6);
  for (double g : o.gradient) EXPECT_TRUE(std::isfinite(g));
}

TEST_P(Loss, TheFirstOfEqualMaximaCounts) {
  EXPECT_EQ(evaluate({of({1, 4}), {1, 5, 5, 2}, {1}, {1}}).correct, 1);
  EXPECT_EQ(evaluate({of({1, 4}), {1, 5, 5, 2}, {2}, {1}}).correct, 0);
}

TEST_P(Loss, CountsLabelsAmongTheFirstKClasses) {
  const DType type = GetParam();
  // Ranks of the labels: 1 (a tie with an earlier class), 2, 0, and a row that does not count.
  const Block logits = block(of({4, 4}), {5, 5, 1, 0, 9, 8, 7, 6, 0, 0, 0, 1, 1, 2, 3, 4});
  const Block labels = block({{4}, 1, DType::i32}, {1, 2, 3, 3}), weights = block({{4}, 1, type}, {1, 1, 1, 0});
  const Block loss = block({{}, 1, type}), correct = block({{}, 1, type}), top = block({{}, 1, type});
  for (const auto& [k, expected] : {std::pair{2, 2}, {3, 3}}) {
    run({"softmax_cross_entropy", {{"top_k", std::int64_t{k}}}, type}, {&logits, &labels, &weights},
        {&loss, &correct, &top});
    EXPECT_EQ(correct.get(0), 1);
    EXPECT_EQ(top.get(0), expected) << k;
  }
}

TEST_P(Loss, TakesClassesOfAFlattenedImageInLogicalOrder) {
  // 2 channels × 3 positions: stored as 0 3 1 4 2 5.
  const std::vector<double> values{0.5, 2, 1, 2, 0, 2};
  for (std::int64_t label = 0; label < 6; ++label) {
    const Rows plain{of({1, 6}), values, {double(label)}, {1}}, image{of({1, 6}, 3), values, {double(label)}, {1}};
    const Outcome a = evaluate(plain), b = evaluate(image);
    EXPECT_NEAR(a.loss, b.loss, 1e-6);
    EXPECT_EQ(b.correct, label == 1 ? 1 : 0) << label;
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(a.gradient[i], b.gradient[i], 1e-6);
  }
}

TEST_P(Loss, RowsOfWeightZeroCountNowhereWhateverTheyHold) {
  const Outcome o = evaluate({of({2, 2}), {0, 0, NAN, NAN}, {0, -7}, {1, 0}});
  EXPECT_NEAR(o.loss, std::log(2.0), 1e-6);
  EXPECT_EQ(o.correct, 1);
  EXPECT_EQ(o.gradient[2], 0);
  EXPECT_EQ(o.gradient[3], 0);
}

TEST_P(Loss, NoRowsGiveZero) {
  const Outcome o = evaluate({of({0, 5}), {}, {}, {}});
  EXPECT_EQ(o.loss, 0);
  EXPECT_EQ(o.correct, 0);
}

TEST_P(Loss, ANanLogitMakesTheLossNan) {
  EXPECT_TRUE(std::isnan(evaluate({of({1, 3}), {0, NAN, 1}, {0}, {1}}).loss));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Loss, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(LossLabels, OutOfRangeMakeASinglePrecisionLossNan) {
  for (double label : {-1.0, 3.0}) {
    const Block logits = block({{1, 3}, 1, DType::f32}, {1, 2, 3}), labels = block({{1}, 1, DType::i32}, {label}),
                weights = block({{1}, 1, DType::f32}, {1}), loss = block({{}, 1, DType::f32}),
                correct = block({{}, 1, DType::f32});
    run({"softmax_cross_entropy", {}, DType::f32}, {&logits, &labels, &weights}, {&loss, &correct});
    EXPECT_TRUE(std::isnan(loss.get(0)));
    EXPECT_EQ(correct.get(0), 0);
  }
}

TEST(LossLabels, OutOfRangeAreABugInTheReference) {
  const Block logits = block({{1, 3}}, {1, 2, 3}), labels = block({{1}, 1, DType::i32}, {3}),
              weights = block({{1}}, {1});
  const Block loss = block({{}}), correct = block({{}});
  try {
    run({"softmax_cross_entropy"}, {&logits, &labels, &weights}, {&loss, &correct});
    FAIL() << "accepted";
  } catch (const Bug& bug) {
    EXPECT_NE(std::string(bug.what()).find("label 3 of 3 classes"), std::string::npos) << bug.what();
  }
}

} // namespace
} // namespace soybean::kernels_test
