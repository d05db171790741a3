// Dropout: masks that depend on nothing but seed, stream, step and logical index.
#include "base/philox.hpp"
#include "kernels/layout.hpp"
#include "unit/kernels/blocks.hpp"

#include <gtest/gtest.h>

namespace soybean::kernels_test {
namespace {

constexpr std::int64_t seed = -3; // bits of an unsigned number
constexpr std::int64_t stream = 99;

graph::Attributes rate(double value) {
  return {{"rate", value}, {"seed", seed}, {"stream", stream}};
}
Block hyper(double step) {
  return block({{2}}, {0.1, step});
}
std::vector<double> ones(std::int64_t n) {
  return std::vector<double>(static_cast<std::size_t>(n), 1.0);
}

/// The mask of a whole tensor by the definition, in logical order, scaled.
std::vector<double> expected_mask(std::int64_t n, double rate, std::uint64_t step) {
  std::vector<double> values(static_cast<std::size_t>(n), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (philox::uniform({static_cast<std::uint64_t>(seed), stream, step}, i) >= rate) values[i] = 1 / (1 - rate);
  return values;
}

class Dropout : public ::testing::TestWithParam<DType> {};

TEST_P(Dropout, FollowsTheDefinitionInLogicalOrderWhateverTheLayout) {
  const Block h = hyper(5);
  for (const Spec& spec :
       {images({3, 70, 2, 3}, GetParam()), Spec{{5, 90}, 1, GetParam()}, Spec{{4, 12}, 6, GetParam()},
        Spec{{7, 5, 1, 1}, 1, GetParam()}, Spec{{130}, 1, GetParam()}}) {
    const std::int64_t n = volume(spec.shape);
    const Block x = block(spec, ones(n)), y = block(spec), dx = block(spec);
    run({"dropout", rate(0.25), GetParam()}, {&x, &h}, {&y});
    const std::vector<double> mask = logical(y), expected = expected_mask(n, 0.25, 5);
    for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(mask[i], expected[i], 1e-6) << to_string(spec.shape) << " " << i;
    run({"dropout_grad", rate(0.25), GetParam()}, {&x, &h}, {&dx});
    EXPECT_EQ(logical(dx), mask);
  }
}

TEST_P(Dropout, ABlockDrawsItsPartOfTheWholeMask) {
  const Block h = hyper(2);
  for (const Spec& spec :
       {images({5, 8, 3, 2}, GetParam()), Spec{{5, 24}, 3, GetParam()}, Spec{{5, 9}, 1, GetParam()}}) {
    const graph::Tensor t = tensor(spec);
    const Block x = block(spec, ones(volume(spec.shape))), y = block(spec);
    run({"dropout", rate(0.5), GetParam()}, {&x, &h}, {&y});
    Box box = whole(spec.shape);
    box.offsets[0] = 2, box.extents[0] = 3;
    box.offsets[1] = 3, box.extents[1] = spec.shape[1] - 3;
    const Block part = support::slice(t, x, box);
    const Block result(t, box);
    run({"dropout", rate(0.5), GetParam()}, {&part, &h}, {&result});
    EXPECT_EQ(logical(result), logical(support::slice(t, y, box))) << to_string(spec.shape);
  }
}

TEST_P(Dropout, AnotherStepAnotherMask) {
  const Spec spec{{10, 10}, 1, GetParam()};
  const Block x = block(spec, ones(100)), y1 = block(spec), y2 = block(spec);
  const Block h1 = hyper(1), h2 = hyper(2);
  run({"dropout", rate(0.5), GetParam()}, {&x, &h1}, {&y1});
  run({"dropout", rate(0.5), GetParam()}, {&x, &h2}, {&y2});
  EXPECT_NE(logical(y1), logical(y2));
}

TEST_P(Dropout, KeepsTheShareItSays) {
  const Spec spec{{100, 1000}, 1, GetParam()};
  const Block x = block(spec, ones(100000)), y = block(spec), h = hyper(0);
  for (double r : {0.0, 0.1, 0.9}) {
    run({"dropout", rate(r), GetParam()}, {&x, &h}, {&y});
    double kept = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) kept += y.get(i) != 0;
    EXPECT_NEAR(kept / 100000, 1 - r, r == 0 ? 0 : 0.004);
  }
}

TEST_P(Dropout, PassesThroughWhenNotTraining) {
  const Spec spec{{2, 3}, 1, GetParam()};
  const Block x = block(spec, {1, 2, 3, 4, 5, 6}), y = block(spec), h = hyper(0);
  run({"dropout", rate(0.5), GetParam(), false}, {&x, &h}, {&y});
  EXPECT_EQ(logical(y), logical(x));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Dropout, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(DropoutMask, IsTheSameInBothPrecisionsForOddRates) {
  const Block h = hyper(1);
  for (double r : {0.1, 1.0 / 3, 0.7, 1e-9}) {
    const Spec fast{{300, 70}, 1, DType::f32}, slow{{300, 70}, 1, DType::f64};
    const Block x = block(fast, ones(21000)), x64 = block(slow, ones(21000)), y = block(fast), y64 = block(slow);
    run({"dropout", rate(r), DType::f32}, {&x, &h}, {&y});
    run({"dropout", rate(r), DType::f64}, {&x64, &h}, {&y64});
    for (std::int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.get(i) == 0, y64.get(i) == 0) << i;
  }
}

} // namespace
} // namespace soybean::kernels_test
