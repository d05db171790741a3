#include "base/error.hpp"
#include "base/handles.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "base/types.hpp"

#include <gtest/gtest.h>

namespace {

using namespace soybean;

// Known answers of the reference implementation (Random123, kat_vectors: philox4x32 10).
TEST(Philox, MatchesPublishedVectors) {
  const philox::Block zero = philox::block({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(zero, (philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const philox::Block ones = philox::block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u});
  EXPECT_EQ(ones, (philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  const philox::Block pi = philox::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  EXPECT_EQ(pi, (philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformHasTheRightMomentsAndStreamsDiffer) {
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double u = philox::uniform({1, 2, 3}, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.005);
  EXPECT_NE(philox::bits({1, 2, 3}, 0), philox::bits({2, 2, 3}, 0));
  EXPECT_NE(philox::bits({1, 2, 3}, 0), philox::bits({1, 3, 3}, 0));
  EXPECT_NE(philox::bits({1, 2, 3}, 0), philox::bits({1, 2, 4}, 0));
}

TEST(Philox, NormalHasUnitVariance) {
  double sum = 0, squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = philox::normal({7, 8, 0}, i);
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(Box, IntersectionIsNeverNegative) {
  const Box a{{0, 0}, {4, 4}}, b{{6, 2}, {2, 2}};
  EXPECT_EQ(volume(intersect(a, b)), 0);
  EXPECT_EQ(intersect(a, b).extents[0], 0);
  EXPECT_TRUE(contains(a, Box{{1, 1}, {3, 3}}));
  EXPECT_FALSE(contains(a, Box{{1, 1}, {4, 3}}));
  EXPECT_EQ(to_string(Box{{1, 0}, {2, 4}}), "[1:3, 0:4]");
}

TEST(Shape, TextAndVolume) {
  EXPECT_EQ(to_string(Shape{64, 3, 224, 224}), "64x3x224x224");
  EXPECT_EQ(to_string(Shape{}), "scalar");
  EXPECT_EQ(volume(Shape{}), 1);
  EXPECT_EQ(volume(Shape{3, 0}), 0);
}

TEST(Hash, IsFnv1a) {
  EXPECT_EQ(to_hex(hash_text("")), "cbf29ce484222325");
  EXPECT_EQ(to_hex(hash_text("a")), "af63dc4c8601ec8c");
}

TEST(Errors, CarryTextAndCode) {
  try {
    fail("model.toml:3: kernel, got {} expected at most {}", 9, 8);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "model.toml:3: kernel, got 9 expected at most 8");
    EXPECT_EQ(e.code(), ExitCode::bad_input);
  }
  EXPECT_THROW(ensure(false, "x"), Bug);
}

struct CountTraits {
  using Handle = int*;
  static Handle null() { return nullptr; }
  static void release(Handle h) noexcept { ++*h; }
};

TEST(Unique, ReleasesOnce) {
  int released = 0;
  {
    Unique<CountTraits> a(&released);
    Unique<CountTraits> b = std::move(a);
    EXPECT_FALSE(a); // NOLINT(bugprone-use-after-move): that it then holds nothing
    EXPECT_TRUE(b);
  }
  EXPECT_EQ(released, 1);
}

} // namespace
