#include "device/pack.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace soybean;
using device::Exec;
using device::Order;
using device::TensorView;

using Index = Shape;

/// Calls f(index) for every global index of a box, row-major.
template<class F>
void each_index(const Box& box, F f) {
  if (empty(box)) return;
  Index index = box.offsets;
  for (;;) {
    f(index);
    int d = static_cast<int>(index.size()) - 1;
    for (; d >= 0; --d) {
      if (++index[d] < box.offsets[d] + box.extents[d]) break;
      index[d] = box.offsets[d];
    }
    if (d < 0) return;
  }
}

std::int64_t row_major(const Box& box, const Index& index) {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < index.size(); ++d) position = position * box.extents[d] + index[d] - box.offsets[d];
  return position;
}

/// The definition of the physical order, one element at a time: row [C·S] of dim 0 is stored [S][C].
std::int64_t physical(const Box& box, std::int64_t spatial, const Index& index) {
  const std::int64_t logical = row_major(box, index);
  if (spatial == 1) return logical;
  const std::int64_t row = volume(box) / box.extents[0];
  std::int64_t positions = spatial;
  if (box.extents.size() > 2) positions = row / box.extents[1];
  const std::int64_t in_row = logical % row, channels = row / positions;
  return logical / row * row + in_row % positions * channels + in_row / positions;
}

/// A block whose elements hold their global row-major index.
template<class T>
struct Block {
  std::vector<T> memory;
  TensorView view;

  Block(const Shape& global, const Box& box, std::int64_t spatial, DType dtype, bool fill)
      : memory(volume(box), T(-1)) {
    view = {.data = memory.data(), .dtype = dtype, .box = box, .global = global, .spatial = spatial};
    if (fill)
      each_index(box, [&](const Index& i) { memory[physical(box, spatial, i)] = T(row_major(whole(global), i)); });
  }
};

struct Case {
  Shape global, units;
  std::int64_t spatial = 1;
};

Case random_case(std::mt19937& random) {
  const auto draw = [&](int low, int high) {
    return std::int64_t{std::uniform_int_distribution<int>(low, high)(random)};
  };
  switch (draw(0, 4)) {
  case 0:
    return {{draw(1, 40)}, {1}};
  case 1:
    return {{draw(1, 20), draw(1, 70)}, {1, 1}};
  case 2: { // flattened
    const std::int64_t s = draw(2, 30);
    return {{draw(1, 6), draw(1, 40) * s}, {1, s}, s};
  }
  case 3: { // NHWC
    const std::int64_t h = draw(1, 9), w = draw(1, 9);
    return {{draw(1, 5), draw(1, 40), h, w}, {1, 1, 1, 1}, h * w};
  }
  default: // plain weights
    return {{draw(1, 9), draw(1, 9), draw(1, 4), draw(1, 4)}, {1, 1, 1, 1}};
  }
}

/// A random box of whole units inside `outer`; empty now and then.
Box random_box(std::mt19937& random, const Box& outer, const Shape& units) {
  Box box = outer;
  for (std::size_t d = 0; d < units.size(); ++d) {
    const auto n = static_cast<int>(outer.extents[d] / units[d]);
    std::uniform_int_distribution<int> pick(0, n);
    int a = pick(random), b = pick(random);
    if (a > b) std::swap(a, b);
    if (a == b && random() % 8 != 0) a = 0, b = n;
    box.offsets[d] = outer.offsets[d] + a * units[d];
    box.extents[d] = (b - a) * units[d];
  }
  return box;
}

template<class T>
void round_trips(DType dtype, unsigned seed) {
  const Exec exec(2);
  std::mt19937 random(seed);
  for (int round = 0; round < 400; ++round) {
    const Case c = random_case(random);
    const Box block = random_box(random, whole(c.global), c.units);
    const Box box = random_box(random, block, c.units);
    Block<T> from(c.global, block, c.spatial, dtype, true), to(c.global, block, c.spatial, dtype, false);
    SCOPED_TRACE(to_string(c.global) + " spatial " + std::to_string(c.spatial) + " block " + to_string(block) +
                 " part " + to_string(box));
    for (Order order : {Order::physical, Order::logical}) {
      std::vector<T> packed(volume(box) + 1, T(-7));
      device::pack(exec, from.view, box, packed.data(), order);
      each_index(box, [&](const Index& i) {
        const std::int64_t at = order == Order::physical ? physical(box, c.spatial, i) : row_major(box, i);
        ASSERT_EQ(packed[at], T(row_major(whole(c.global), i)));
      });
      ASSERT_EQ(packed.back(), T(-7));

      std::fill(to.memory.begin(), to.memory.end(), T(-1));
      device::unpack(exec, packed.data(), to.view, box, order);
      each_index(block, [&](const Index& i) {
        const bool inside = contains(box, {i, Shape(i.size(), 1)});
        ASSERT_EQ(to.memory[physical(block, c.spatial, i)], inside ? T(row_major(whole(c.global), i)) : T(-1));
      });
    }
    std::vector<T> host(volume(box)), logical(volume(box));
    device::download(exec, from.view, box, host.data());
    device::pack(exec, from.view, box, logical.data(), Order::logical);
    ASSERT_EQ(host, logical);
    std::fill(to.memory.begin(), to.memory.end(), T(-1));
    device::upload(exec, host.data(), to.view, box);
    device::download(exec, to.view, box, logical.data());
    ASSERT_EQ(host, logical);
  }
}

TEST(Pack, RoundTripsRandomBoxesOfFloats) {
  round_trips<float>(DType::f32, 1);
}
TEST(Pack, RoundTripsRandomBoxesOfDoubles) {
  round_trips<double>(DType::f64, 2);
}
TEST(Pack, RoundTripsRandomBoxesOfIntegers) {
  round_trips<std::int32_t>(DType::i32, 3);
}

TEST(Pack, CopiesBetweenBlocksOfOneTensor) {
  const Exec exec(2);
  std::mt19937 random(4);
  for (int round = 0; round < 400; ++round) {
    const Case c = random_case(random);
    const Box a = random_box(random, whole(c.global), c.units), b = random_box(random, whole(c.global), c.units);
    const Box common = random_box(random, intersect(a, b), c.units);
    Block<float> from(c.global, a, c.spatial, DType::f32, true), to(c.global, b, c.spatial, DType::f32, false);
    device::copy_box(exec, from.view, to.view, common);
    each_index(b, [&](const Index& i) {
      const bool inside = contains(common, {i, Shape(i.size(), 1)});
      ASSERT_EQ(to.memory[physical(b, c.spatial, i)], inside ? float(row_major(whole(c.global), i)) : -1.0f);
    });
  }
}

TEST(Pack, CutsAFlattenedDimInsideChannelsInLogicalOrder) {
  const Exec exec(1);
  const Shape global{3, 5 * 7};
  for (std::int64_t begin = 0; begin < 35; ++begin)
    for (std::int64_t end = begin; end <= 35; ++end) {
      const Box box{{1, begin}, {2, end - begin}};
      Block<double> block(global, whole(global), 7, DType::f64, true);
      Block<double> back(global, whole(global), 7, DType::f64, false), copied = back;
      copied.view.data = copied.memory.data();
      std::vector<double> packed(volume(box));
      device::pack(exec, block.view, box, packed.data(), Order::logical);
      device::unpack(exec, packed.data(), back.view, box, Order::logical);
      device::copy_box(exec, block.view, copied.view, box);
      each_index(whole(global), [&](const Index& i) {
        const double value = static_cast<double>(row_major(whole(global), i));
        const bool inside = contains(box, {i, {1, 1}});
        if (inside) {
          ASSERT_EQ(packed[row_major(box, i)], value);
        }
        ASSERT_EQ(back.memory[physical(whole(global), 7, i)], inside ? value : -1.0);
        ASSERT_EQ(copied.memory[physical(whole(global), 7, i)], inside ? value : -1.0);
      });
    }
}

TEST(Pack, LargeCopiesUseAllThreadsAndKeepEveryElement) {
  const Exec exec(2);
  const Shape global{4, 96, 40, 30};
  Block<float> block(global, whole(global), 1200, DType::f32, true);
  std::vector<float> logical(volume(global));
  device::pack(exec, block.view, whole(global), logical.data(), Order::logical);
  for (std::int64_t i = 0; i < volume(global); ++i) ASSERT_EQ(logical[i], float(i));
  Block<float> back(global, whole(global), 1200, DType::f32, false);
  device::unpack(exec, logical.data(), back.view, whole(global), Order::logical);
  EXPECT_EQ(back.memory, block.memory);
  std::vector<float> copy(volume(global));
  device::pack(exec, block.view, whole(global), copy.data(), Order::physical);
  EXPECT_EQ(copy, block.memory);
}

TEST(Pack, ContiguityAgreesWithTheDefinition) {
  std::mt19937 random(5);
  int contiguous = 0;
  for (int round = 0; round < 2000; ++round) {
    const Case c = random_case(random);
    const Box block = random_box(random, whole(c.global), c.units), box = random_box(random, block, c.units);
    const TensorView view{.data = nullptr, .dtype = DType::f32, .box = block, .global = c.global, .spatial = c.spatial};
    std::int64_t first = -1;
    const bool answer = device::is_contiguous(view, box, &first);
    std::int64_t begin = 0;
    bool expected = true;
    if (!empty(box)) {
      each_index(box, [&](const Index& i) {
        if (physical(box, c.spatial, i) == 0) begin = physical(block, c.spatial, i);
      });
      each_index(box, [&](const Index& i) {
        expected = expected && physical(block, c.spatial, i) == begin + physical(box, c.spatial, i);
      });
    }
    ASSERT_EQ(answer, expected) << to_string(c.global) << to_string(block) << to_string(box) << c.spatial;
    if (answer) {
      ASSERT_EQ(first, begin);
    }
    contiguous += answer;
  }
  EXPECT_GT(contiguous, 100);
  EXPECT_LT(contiguous, 1900);
}

TEST(Pack, RefusesBoxesOutsideTheBlock) {
  const Exec exec(1);
  Block<float> block({4, 4}, {{0, 0}, {2, 4}}, 1, DType::f32, true);
  std::vector<float> packed(16);
  EXPECT_THROW(device::pack(exec, block.view, {{1, 0}, {2, 4}}, packed.data(), Order::physical), Bug);
  EXPECT_THROW(device::copy_box(exec, block.view, block.view, {{3, 0}, {1, 1}}), Bug);
}

} // namespace
