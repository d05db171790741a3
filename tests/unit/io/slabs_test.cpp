#include "io/checksum.hpp"
#include "io/gather.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

namespace {

using namespace soybean;
using namespace soybean::io;

TEST(Slabs, FollowEachOtherInRowMajorOrderWithinTheLimit) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    Shape shape;
    for (int d = static_cast<int>(random() % 5); d > 0; --d) shape.push_back(static_cast<std::int64_t>(random() % 9));
    const std::int64_t element = random() % 2 ? 4 : 8, limit = 8 + static_cast<std::int64_t>(random() % 300);
    std::int64_t at = 0;
    for (const Box& slab : slabs(shape, element, limit)) {
      EXPECT_LE(volume(slab) * element, limit);
      EXPECT_TRUE(contains(whole(shape), slab));
      std::int64_t first = 0; // of the slab in row-major order; it is one run if its last element says so
      std::int64_t last = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        first = first * shape[d] + slab.offsets[d];
        last = last * shape[d] + slab.offsets[d] + slab.extents[d] - 1;
      }
      EXPECT_EQ(first, at);
      EXPECT_EQ(last - first + 1, volume(slab));
      at += volume(slab);
    }
    EXPECT_EQ(at, volume(shape)) << to_string(shape);
  }
}

TEST(Slabs, CutAsExpected) {
  EXPECT_EQ(slabs({4096, 25088}, 4, slab_bytes).front(), (Box{{0, 0}, {159, 25088}}));
  EXPECT_EQ(slabs({2, 5'000'000}, 4, slab_bytes), (std::vector<Box>{{{0, 0}, {1, 4'000'000}},
                                                                    {{0, 4'000'000}, {1, 1'000'000}},
                                                                    {{1, 0}, {1, 4'000'000}},
                                                                    {{1, 4'000'000}, {1, 1'000'000}}}));
  EXPECT_EQ(slabs({}, 4, slab_bytes).size(), 1u);
  EXPECT_TRUE(slabs({3, 0}, 4, slab_bytes).empty());
}

TEST(Checksum, ChangesWithEveryBitAndTheLength) {
  std::mt19937 random(1);
  for (std::size_t bytes : {0, 1, 7, 8, 9, 31, 32, 33, 100}) {
    std::vector<std::byte> data(bytes);
    for (std::byte& b : data) b = static_cast<std::byte>(random());
    std::set<std::uint64_t> seen{checksum(data)};
    for (std::size_t bit = 0; bit < 8 * bytes; ++bit) {
      data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_TRUE(seen.insert(checksum(data)).second) << "bit " << bit << " of " << bytes << " bytes";
      data[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    data.emplace_back();
    EXPECT_TRUE(seen.insert(checksum(data)).second) << "a zero byte more";
  }
}

TEST(Checksum, IsTheOneOfEarlierVersions) {
  std::vector<std::byte> data(1000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * i % 251);
  EXPECT_EQ(checksum({}), 0x5e0a8bae0aeb22d3ULL);
  EXPECT_EQ(checksum(data), 0xb6665b37739151deULL);
}

} // namespace
