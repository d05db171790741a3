// Ranges with halos: against the definition, position by position; and what moving to them costs, against ranks that
// exchange the pieces.
#include "base/error.hpp"
#include "random_tilings.hpp"
#include "simulated_ranks.hpp"
#include "tiling/overlap.hpp"
#include "tiling/redistribution.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::tiling;

/// From a window's first position to its last.
std::int64_t reach_of(const Halo& halo) {
  return std::int64_t{halo.dilation} * (halo.kernel - 1);
}

/// Windows over an image of n positions: as many as fit, `more` of them beyond (as ceil_mode has).
struct Case {
  std::int64_t n;
  Halo halo; ///< reach and other left open
  std::int64_t windows() const { return (n + 2 * std::int64_t{halo.padding} - reach_of(halo) - 1) / halo.stride + 1; }
  std::string text() const {
    return fmt::format("n {} kernel {} stride {} dilation {} padding {}", n, halo.kernel, halo.stride, halo.dilation,
                       halo.padding);
  }
};

/// Every stride, kernel, padding, dilation and extent of a small set.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t n : {1, 2, 5, 7, 12})
    for (const int kernel : {1, 2, 3, 5})
      for (const int stride : {1, 2, 3, 4})
        for (const int dilation : {1, 2, 3})
          for (const int padding : {0, 1, 2, 3}) {
            const Case c{n, {.stride = stride, .kernel = kernel, .dilation = dilation, .padding = padding}};
            if (n + 2 * std::int64_t{padding} > reach_of(c.halo)) cases.push_back(c);
          }
  return cases;
}

/// Positions of the image that a window reaches.
std::set<std::int64_t> reached(const Case& c, std::int64_t window) {
  std::set<std::int64_t> positions;
  for (int r = 0; r < c.halo.kernel; ++r) {
    const std::int64_t at = window * c.halo.stride - c.halo.padding + r * std::int64_t{c.halo.dilation};
    if (at >= 0 && at < c.n) positions.insert(at);
  }
  return positions;
}

/// From the first to the last of a set.
Range hull(const std::set<std::int64_t>& set) {
  return set.empty() ? Range{0, 0} : Range{*set.begin(), *set.rbegin() + 1};
}

std::set<std::int64_t> positions_of(const Case& c, Range windows) {
  std::set<std::int64_t> positions;
  for (std::int64_t i = windows.begin; i < windows.end; ++i) positions.merge(reached(c, i));
  return positions;
}

Range windows_of(const Case& c, Range block) {
  std::set<std::int64_t> windows;
  for (std::int64_t i = 0; i < c.windows(); ++i)
    for (const std::int64_t at : reached(c, i))
      if (at >= block.begin && at < block.end) windows.insert(i);
  return hull(windows);
}

Halo halo_of(const Case& c, Reach reach) {
  Halo halo = c.halo;
  halo.reach = reach;
  halo.other = static_cast<std::int32_t>(reach == Reach::windows ? c.n : c.windows());
  return halo;
}

void expect_range(const Range& got, const Range& expected, const std::string& what) {
  EXPECT_EQ(got.begin, expected.begin) << what;
  EXPECT_EQ(got.end, expected.end) << what;
}

TEST(Halo, RangesAreTheSmallestThatHoldAllThatIsReached) {
  for (const Case& c : all_cases()) {
    for (std::int64_t begin = 0; begin < c.windows(); ++begin)
      for (std::int64_t end = begin + 1; end <= c.windows(); ++end)
        expect_range(needed_range(halo_of(c, Reach::positions), c.n, {begin, end}), hull(positions_of(c, {begin, end})),
                     fmt::format("{} positions of [{}, {})", c.text(), begin, end));
    for (std::int64_t begin = 0; begin < c.n; ++begin)
      for (std::int64_t end = begin + 1; end <= c.n; ++end) {
        const Range windows = windows_of(c, {begin, end});
        const std::string what = fmt::format("{} [{}, {})", c.text(), begin, end);
        expect_range(needed_range(halo_of(c, Reach::windows), c.windows(), {begin, end}), windows, "windows " + what);
        expect_range(needed_range(halo_of(c, Reach::neighbours), c.n, {begin, end}), hull(positions_of(c, windows)),
                     "neighbours " + what);
      }
    if (HasFailure()) return;
  }
}

TEST(Halo, OfNothingIsNothing) {
  for (const Reach reach : {Reach::positions, Reach::windows, Reach::neighbours}) {
    const Halo halo{.reach = reach, .other = 5, .kernel = 3, .padding = 1};
    expect_range(needed_range(halo, 5, {2, 2}), {0, 0}, "empty block");
  }
  // Windows of one position, three apart: none reaches positions 1 and 2.
  expect_range(needed_range({.reach = Reach::windows, .other = 7, .stride = 3}, 3, {1, 3}), {0, 0}, "gap");
}

std::string ranges(const Mesh& mesh, std::int64_t n, const Tiling& tiling) {
  std::string text;
  for (int rank = 0; rank < ranks(mesh); ++rank) text += to_string(block(tiling, {n}, mesh, rank)) + " ";
  return text;
}

Entry halo_split(Halo halo, int dim = 0) {
  return split(dim, 1, halo);
}

TEST(Halo, BlocksOverlapByWhatWindowsShare) {
  // Rows of a 3×3 convolution, padded by 1: the padding stays outside of the image.
  EXPECT_EQ(ranges({{4}}, 8, {halo_split({.reach = Reach::positions, .other = 8, .kernel = 3, .padding = 1})}),
            "[0:3] [1:5] [3:7] [5:8] ");
  // Stride 2: 7 windows in blocks of 3 and 4 over 14 positions.
  EXPECT_EQ(
      ranges({{2}}, 14, {halo_split({.reach = Reach::positions, .other = 7, .stride = 2, .kernel = 3, .padding = 1})}),
      "[0:6] [5:14] ");
  // Halos wider than a neighbour's block.
  EXPECT_EQ(ranges({{4}}, 4, {halo_split({.reach = Reach::positions, .other = 4, .kernel = 5, .padding = 2})}),
            "[0:3] [0:4] [0:4] [1:4] ");
  // Two cuts nest.
  const Entry entry = halo_split({.reach = Reach::positions, .other = 8, .kernel = 3, .padding = 1});
  EXPECT_EQ(ranges({{2, 2}}, 8, {entry, entry}), "[0:3] [1:5] [3:7] [5:8] ");
}

TEST(Halo, NormalisesToBlocksAndToAllOfADim) {
  const Mesh mesh{{2, 2}};
  const auto normal = [&](std::int64_t n, const Halo& halo) {
    return to_string(normalise({halo_split(halo), halo_split(halo)}, {n}, mesh));
  };
  EXPECT_EQ(normal(8, {.reach = Reach::positions, .other = 8}), "split(0),split(0)"); // kernels of 1
  EXPECT_EQ(normal(8, {.reach = Reach::positions, .other = 4, .stride = 2, .kernel = 2}), "split(0),split(0)");
  EXPECT_EQ(normal(4, {.reach = Reach::windows, .other = 8, .stride = 2, .kernel = 2}), "split(0),split(0)");
  EXPECT_EQ(normal(8, {.reach = Reach::neighbours, .other = 4, .stride = 2, .kernel = 2}), "split(0),split(0)");
  EXPECT_EQ(normal(4, {.reach = Reach::positions, .other = 4, .kernel = 7, .padding = 3}), "replicate,replicate");
  EXPECT_EQ(normal(8, {.reach = Reach::positions, .other = 8, .kernel = 3, .padding = 1}),
            "split(0)+halo(3 padding 1),split(0)+halo(3 padding 1)");
  EXPECT_EQ(normal(14, {.reach = Reach::positions, .other = 7, .stride = 2, .kernel = 2}), // blocks of 1, 2, 2, 2
            "split(0)+halo(2 stride 2),split(0)+halo(2 stride 2)");
}

TEST(Halo, TextNamesWhatIsReached) {
  const Halo halo{.reach = Reach::windows, .other = 9, .stride = 2, .kernel = 3, .dilation = 2, .padding = 1};
  EXPECT_EQ(to_string(Tiling{split(2, 1, halo)}), "split(2)+windows(3 stride 2 dilation 2 padding 1)");
  EXPECT_EQ(to_string(Tiling{split(3, 1, {.reach = Reach::neighbours, .other = 9, .kernel = 3})}),
            "split(3)+neighbours(3)");
  EXPECT_THROW(parse_tiling("split(2)+halo(3)", "plan.json"), Error); // never written by hand, never stored
}

TEST(Halo, EmptyRangesAreEmptyBlocks) {
  const Tiling gap{halo_split({.reach = Reach::windows, .other = 6, .stride = 3})};
  EXPECT_EQ(ranges({{3}}, 2, gap), "[0:1] [1:2] [0:0] ");
  EXPECT_TRUE(has_empty_block(gap, {2}, {{3}}));
  EXPECT_FALSE(has_empty_block(gap, {2}, {{2}}));
}

TEST(Halo, AreNotWhatAMoveBeginsWith) {
  const Tiling halo{halo_split({.reach = Reach::positions, .other = 8, .kernel = 3, .padding = 1})};
  EXPECT_TRUE(path({{2}}, {{8}, {}}, halo, halo).empty());
  EXPECT_THROW(path({{2}}, {{8}, {}}, halo, {replicate()}), Bug);
  EXPECT_THROW(exchange_pieces({{2}}, {8}, halo, {replicate()}, 0), Bug);
}

/// Each rank lacks one row of each neighbour: 2·3 rows of 8×5 elements.
TEST(Halo, AnExchangeMovesTheRowsThatAreLacking) {
  const Shape shape{2, 4, 8, 5};
  const Entry needed = halo_split({.reach = Reach::positions, .other = 8, .kernel = 3, .padding = 1}, 2);
  EXPECT_EQ(elements_moved({{4}}, {shape, {}}, {split(2)}, {needed}), 6 * 2 * 4 * 5);
  // From whole samples: half of the rows [0, 5) and [3, 8).
  EXPECT_EQ(elements_moved({{2}}, {shape, {}}, {split(0)}, {needed}), 2 * 5 * 1 * 4 * 5);
  EXPECT_EQ(elements_moved({{2}}, {shape, {}}, {replicate()}, {needed}), 0);
}

/// A random halo of a dim of n elements that windows slide over, or that are windows themselves.
Halo random_halo(Draw& draw, std::int64_t n) {
  Halo halo{.stride = static_cast<std::int32_t>(draw.number(1, 3)),
            .kernel = static_cast<std::int32_t>(draw.number(1, 4)),
            .dilation = static_cast<std::int32_t>(draw.number(1, 2)),
            .padding = static_cast<std::int32_t>(draw.number(0, 2))};
  const std::int64_t padding = 2 * std::int64_t{halo.padding}, reach = reach_of(halo);
  const std::int64_t image = std::max<std::int64_t>(1, (n - 1) * halo.stride + reach + 1 - padding),
                     windows = (n + padding - reach - 1) / halo.stride + 1;
  halo.reach = draw.one_of(std::vector<Reach>{Reach::positions, Reach::windows, Reach::neighbours});
  if (windows < 1) halo.reach = Reach::windows;
  halo.other = static_cast<std::int32_t>(halo.reach == Reach::windows ? image : windows);
  return halo;
}

TEST(Halo, MovesFromAnyTilingReceiveExactlyWhatIsLacking) {
  Draw draw(7);
  int halos = 0;
  for (int round = 0; round < 400; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(static_cast<int>(draw.number(1, 3)), 11);
    const Shape units(shape.size(), 1);
    const Tiling from = normalise(draw.tiling(mesh, shape, units, round % 2 == 0 ? 3 : 0), shape, mesh);
    Tiling to = draw.tiling(mesh, shape, units);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Halo halo = random_halo(draw, shape[d]);
      for (Entry& e : to)
        if (e.kind == Kind::split && e.dim == static_cast<int>(d)) e.halo = halo;
    }
    to = normalise(to, shape, mesh);
    check(to, shape, mesh, "a random tiling");
    halos += has_halo(to);
    std::int64_t held = 0, common = 0;
    for (int rank = 0; rank < ranks(mesh); ++rank) {
      held += volume(block(to, shape, mesh, rank));
      common += volume(intersect(block(to, shape, mesh, rank), block(from, shape, mesh, rank)));
    }
    EXPECT_EQ(held_elements(mesh, shape, to), held) << to_string(to);
    if (!has_partial(from)) {
      EXPECT_EQ(overlap(mesh, shape, from, to), common);
      EXPECT_EQ(elements_moved(mesh, {shape, {}}, from, to), held - common);
    }
    const std::vector<Step> steps = path(mesh, {shape, {}}, from, to);
    EXPECT_EQ(simulate(mesh, shape, steps, from, to), elements_moved(mesh, {shape, {}}, from, to))
        << to_string(from) << " -> " << to_string(to);
    if (HasFailure()) return;
  }
  EXPECT_GT(halos, 150);
}

} // namespace
