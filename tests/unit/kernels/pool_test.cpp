// Pooling on values worked out by hand, by PyTorch's rules.
#include "base/error.hpp"
#include "unit/kernels/blocks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace soybean::kernels_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

graph::Attributes window(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {{"kernel", Shape{kernel, kernel}}, {"stride", Shape{stride, stride}}, {"padding", Shape{padding, padding}}};
}

/// Both precisions must follow the same rules.
class Pool : public ::testing::TestWithParam<DType> {
protected:
  Spec images_of(Shape shape) const { return images(std::move(shape), GetParam()); }
};

TEST_P(Pool, MaxTakesTheLargestAndItsGradientGoesThere) {
  const Block x = block(images_of({1, 1, 2, 4}), {1, 5, 2, 3, 4, 0, 8, 6});
  const Block y = block(images_of({1, 1, 1, 2})), dx = block(images_of({1, 1, 2, 4}));
  run({"max_pool", window(2, 2, 0), GetParam()}, {&x}, {&y});
  EXPECT_EQ(logical(y), (std::vector<double>{5, 8}));
  const Block dy = block(images_of({1, 1, 1, 2}), {10, 20});
  run({"max_pool_grad", window(2, 2, 0), GetParam()}, {&dy, &x}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{0, 10, 0, 0, 0, 0, 20, 0}));
}

TEST_P(Pool, TheFirstOfEqualMaximaGetsTheGradientRowByRow) {
  const Block x = block(images_of({1, 1, 2, 2}), {3, 7, 7, 7}), dy = block(images_of({1, 1, 1, 1}), {1});
  const Block dx = block(images_of({1, 1, 2, 2}));
  run({"max_pool_grad", window(2, 2, 0), GetParam()}, {&dy, &x}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{0, 1, 0, 0}));
}

TEST_P(Pool, OverlappingWindowsAddTheirGradients) {
  const Block x = block(images_of({1, 1, 3, 3}), {0, 0, 0, 0, 9, 0, 0, 0, 0}),
              dy = block(images_of({1, 1, 2, 2}), {1, 2, 4, 8});
  const Block dx = block(images_of({1, 1, 3, 3}));
  run({"max_pool_grad", window(2, 1, 0), GetParam()}, {&dy, &x}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{0, 0, 0, 0, 15, 0, 0, 0, 0}));
}

TEST_P(Pool, PaddingNeverWinsEvenAgainstMinusInfinity) {
  const Block x = block(images_of({1, 1, 1, 2}), {-5, -inf}), dy = block(images_of({1, 1, 1, 2}), {1, 2});
  const Block y = block(images_of({1, 1, 1, 2})), dx = block(images_of({1, 1, 1, 2}));
  const graph::Attributes wide{{"kernel", Shape{3, 2}}, {"stride", Shape{1, 2}}, {"padding", Shape{1, 1}}};
  run({"max_pool", wide, GetParam()}, {&x}, {&y}); // windows over [padding, −5] and [−∞, padding]
  EXPECT_EQ(logical(y), (std::vector<double>{-5, -inf}));
  run({"max_pool_grad", wide, GetParam()}, {&dy, &x}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{1, 2}));
}

TEST_P(Pool, ANanWinsAndTheLastOfThemGetsTheGradient) {
  const Block x = block(images_of({1, 1, 2, 2}), {1, nan, nan, 3}), dy = block(images_of({1, 1, 1, 1}), {1});
  const Block y = block(images_of({1, 1, 1, 1})), dx = block(images_of({1, 1, 2, 2}));
  run({"max_pool", window(2, 2, 0), GetParam()}, {&x}, {&y});
  EXPECT_TRUE(std::isnan(y.get(0)));
  run({"max_pool_grad", window(2, 2, 0), GetParam()}, {&dy, &x}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{0, 0, 1, 0}));
}

TEST_P(Pool, AverageCountsPaddingAsZerosOfAWholeKernel) {
  const Block x = block(images_of({1, 1, 2, 2}), {4, 8, 12, 16});
  const Block y = block(images_of({1, 1, 2, 2})), dx = block(images_of({1, 1, 2, 2}));
  run({"avg_pool", window(2, 2, 1), GetParam()}, {&x}, {&y});
  EXPECT_EQ(logical(y), (std::vector<double>{1, 2, 3, 4}));
  run({"avg_pool_grad", window(2, 2, 1), GetParam()}, {&x}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{1, 2, 3, 4}));
}

TEST_P(Pool, GlobalAverageIsPerSampleAndChannel) {
  const Block x = block(images_of({1, 2, 1, 2}), {1, 3, 10, 20});
  const Block y = block(images_of({1, 2, 1, 1})), dx = block(images_of({1, 2, 1, 2}));
  run({"global_avg_pool", {}, GetParam()}, {&x}, {&y});
  EXPECT_EQ(logical(y), (std::vector<double>{2, 15}));
  run({"global_avg_pool_grad", {}, GetParam()}, {&y}, {&dx});
  EXPECT_EQ(logical(dx), (std::vector<double>{1, 1, 7.5, 7.5}));
}

TEST_P(Pool, EmptyBlocksAreLegal) {
  for (const Shape& shape : {Shape{0, 3, 4, 4}, Shape{2, 0, 4, 4}}) {
    const Block x = block(images_of(shape)), y = block(images_of({shape[0], shape[1], 2, 2}));
    EXPECT_NO_THROW(run({"max_pool", window(2, 2, 0), GetParam()}, {&x}, {&y}));
    EXPECT_NO_THROW(run({"max_pool_grad", window(2, 2, 0), GetParam()}, {&y, &x}, {&x}));
    EXPECT_NO_THROW(run({"avg_pool", window(2, 2, 0), GetParam()}, {&x}, {&y}));
    EXPECT_NO_THROW(run({"avg_pool_grad", window(2, 2, 0), GetParam()}, {&y}, {&x}));
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, Pool, ::testing::Values(DType::f32, DType::f64),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(PoolBlocks, OfOtherImagesAreABug) {
  const graph::Tensor whole_image = tensor(images({1, 1, 4, 4}, DType::f32));
  graph::Tensor part = whole_image;
  part.spatial = 8;
  const Block x(part, {{0, 0, 0, 0}, {1, 1, 2, 4}}), y = block(images({1, 1, 1, 2}, DType::f32));
  EXPECT_THROW(run({"max_pool", window(2, 2, 0), DType::f32}, {&x}, {&y}), Bug);
}

} // namespace
} // namespace soybean::kernels_test
