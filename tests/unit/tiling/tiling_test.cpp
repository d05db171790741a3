#include "base/error.hpp"
#include "random_tilings.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace {

using namespace soybean;
using namespace soybean::tiling;

template<class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<Box> blocks(const Tiling& tiling, const Shape& shape, const Mesh& mesh) {
  std::vector<Box> all;
  all.reserve(static_cast<std::size_t>(ranks(mesh)));
  for (int rank = 0; rank < ranks(mesh); ++rank) all.push_back(block(tiling, shape, mesh, rank));
  return all;
}

TEST(BlockRange, WholeUnitsLastBlockEndsAtTheExtent) {
  // 7 elements in units of 2: three whole units, the odd element goes to the last block.
  EXPECT_EQ(block_range(7, 2, 2, 0).end, 2);
  EXPECT_EQ(block_range(7, 2, 2, 1).begin, 2);
  EXPECT_EQ(block_range(7, 2, 2, 1).end, 7);
  // Fewer elements than parts: empty blocks.
  EXPECT_EQ(block_range(2, 1, 4, 0).end, 0);
  EXPECT_EQ(block_range(2, 1, 4, 3).begin, 1);
}

TEST(Block, FollowsTheCuts) {
  const Mesh mesh{{2, 3}};
  EXPECT_EQ(to_string(block({split(1), replicate()}, {4, 6}, mesh, 4)), "[0:4, 3:6]");
  EXPECT_EQ(to_string(block({split(0), split(1)}, {4, 6}, mesh, 5)), "[2:4, 4:6]");
  EXPECT_EQ(to_string(block({split(1), split(1)}, {4, 7}, mesh, 5)), "[0:4, 5:7]");
  EXPECT_EQ(to_string(block({partial(), split(1)}, {4, 6}, mesh, 4)), "[0:4, 2:4]");
  EXPECT_EQ(block({partial(), replicate()}, {}, mesh, 4), whole({}));
}

// Every element is in exactly the blocks of the ranks that agree in the split cuts, and blocks of more cuts are parts
// of blocks of fewer.
TEST(Block, BlocksPartitionAndNest) {
  Draw draw(1);
  for (int round = 0; round < 600; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(static_cast<int>(draw.number(1, 3)), 13);
    const Tiling tiling = draw.tiling(mesh, shape, draw.units(shape), 6);
    const std::vector<Box> all = blocks(tiling, shape, mesh);

    std::set<std::string> distinct;
    std::int64_t covered = 0;
    for (int a = 0; a < ranks(mesh); ++a) {
      const auto& mine = all[static_cast<std::size_t>(a)];
      ASSERT_TRUE(contains(whole(shape), mine));
      for (int b = 0; b < a; ++b) {
        bool same = true;
        for (int cut = 0; cut < static_cast<int>(mesh.cuts.size()); ++cut)
          same = same && (tiling[static_cast<std::size_t>(cut)].kind != Kind::split ||
                          coordinate(mesh, a, cut) == coordinate(mesh, b, cut));
        const auto& other = all[static_cast<std::size_t>(b)];
        if (same)
          ASSERT_EQ(mine, other);
        else
          ASSERT_TRUE(empty(intersect(mine, other))) << to_string(tiling);
      }
      if (distinct.insert(to_string(mine)).second) covered += volume(mine);
    }
    ASSERT_EQ(covered, volume(shape)) << to_string(tiling) << " of " << to_string(shape);

    for (int cuts = 0; cuts < static_cast<int>(mesh.cuts.size()); ++cuts) {
      const Mesh outer = prefix(mesh, cuts);
      const Tiling head(tiling.begin(), tiling.begin() + cuts);
      for (int rank = 0; rank < ranks(mesh); ++rank)
        ASSERT_TRUE(contains(block(head, shape, outer, rank * ranks(outer) / ranks(mesh)),
                             all[static_cast<std::size_t>(rank)]));
    }
  }
}

TEST(Normalise, FindsTheSmallestUnitOfTheSameBlocks) {
  for (std::int64_t parts : {2, 3, 4, 6, 8, 12}) {
    const Mesh mesh{{static_cast<int>(parts)}};
    for (std::int64_t n = 1; n <= 64; ++n)
      for (std::int64_t unit = 1; unit <= n; ++unit) {
        const std::vector<Box> expected = blocks({split(0, unit)}, {n}, mesh);
        std::int64_t smallest = 1;
        while (blocks({split(0, smallest)}, {n}, mesh) != expected) ++smallest;
        ASSERT_EQ(normalise({split(0, unit)}, {n}, mesh), Tiling{split(0, smallest)})
            << n << " in units of " << unit << ", " << parts << " parts";
      }
  }
}

TEST(Normalise, TreatsTheCutsOfADimTogether) {
  const Mesh mesh{{2, 2, 2}};
  // Halves of 24 in units of 4 are even, quarters are not.
  EXPECT_EQ(normalise({split(0, 4), replicate(), replicate()}, {24}, mesh),
            (Tiling{split(0, 1), replicate(), replicate()}));
  EXPECT_EQ(normalise({split(0, 4), replicate(), split(0, 4)}, {24}, mesh),
            (Tiling{split(0, 4), replicate(), split(0, 4)}));
  EXPECT_EQ(normalise({split(1, 9), partial(), split(0, 4)}, {11, 72}, mesh),
            (Tiling{split(1, 1), partial(), split(0, 2)})); // 4 + 7 elements
}

TEST(Normalise, EqualBlocksMeanEqualTilings) {
  Draw draw(2);
  for (int round = 0; round < 400; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(2, 24);
    std::map<std::string, Tiling> by_blocks;
    for (int k = 0; k < 6; ++k) {
      const Tiling tiling = normalise(draw.tiling(mesh, shape, draw.units(shape)), shape, mesh);
      check(tiling, shape, mesh, "test");
      std::string key;
      for (const Entry& e : tiling) key += fmt::format("{}/{} ", static_cast<int>(e.kind), e.dim);
      for (const Box& b : blocks(tiling, shape, mesh)) key += to_string(b);
      const auto [entry, fresh] = by_blocks.emplace(key, tiling);
      ASSERT_EQ(entry->second, tiling);
    }
  }
}

TEST(Tiling, Queries) {
  const Mesh mesh{{3, 2, 2}};
  const Tiling tiling{split(0), split(1, 4), split(0)};
  EXPECT_EQ(parts(tiling, mesh, 0), 6);
  EXPECT_EQ(parts(tiling, mesh, 1), 2);
  EXPECT_EQ(parts(tiling, mesh, 2), 1);
  EXPECT_FALSE(has_partial(tiling));
  EXPECT_TRUE(has_partial({split(0), partial(), replicate()}));
  EXPECT_EQ(replicated(mesh), (Tiling{replicate(), replicate(), replicate()}));
}

TEST(Tiling, HasEmptyBlockIsWhatTheBlocksSay) {
  Draw draw(3);
  int with = 0, without = 0;
  for (int round = 0; round < 600; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(2, 12);
    const Tiling tiling = draw.tiling(mesh, shape, draw.units(shape), 5);
    const std::vector<Box> all = blocks(tiling, shape, mesh);
    const bool expected = std::ranges::any_of(all, [](const Box& b) { return empty(b); });
    ASSERT_EQ(has_empty_block(tiling, shape, mesh), expected) << to_string(tiling) << " of " << to_string(shape);
    ++(expected ? with : without);
  }
  EXPECT_GT(with, 50);
  EXPECT_GT(without, 50);
}

TEST(TilingText, RoundTrip) {
  EXPECT_EQ(to_string(Tiling{split(0), replicate(), partial(), split(1, 36)}),
            "split(0),replicate,partial,split(1/36)");
  EXPECT_EQ(to_string(Tiling{}), "whole");
  EXPECT_EQ(parse_tiling("whole", "test"), Tiling{});
  Draw draw(4);
  for (int round = 0; round < 200; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(3, 50);
    const Tiling tiling = draw.tiling(mesh, shape, draw.units(shape), 4);
    ASSERT_EQ(parse_tiling(to_string(tiling), "test"), tiling);
  }
}

TEST(TilingText, SpacesAndDefaultUnits) {
  EXPECT_EQ(parse_tiling(" split( 0 ) ,replicate", "test"), (Tiling{split(0), replicate()}));
  EXPECT_EQ(parse_tiling("split(1),split(0),split(1/2)", "test", {1, 36}),
            (Tiling{split(1, 36), split(0, 1), split(1, 2)}));
  EXPECT_EQ(parse_tiling("split(5)", "test", {1, 36}), (Tiling{split(5, 1)})); // `check` refuses the dim
}

TEST(TilingText, Errors) {
  const auto message = [](std::string_view text, std::string_view entry) {
    return fmt::format("parallel.pins.fc6: entry of tiling \"{}\", got \"{}\" expected split(DIM), split(DIM/UNIT), "
                       "replicate or partial. write one entry per cut, separated by commas, such as "
                       "\"split(0),replicate\"",
                       text, entry);
  };
  const auto parsed = [](std::string_view text) { return error_of([&] { parse_tiling(text, "parallel.pins.fc6"); }); };
  EXPECT_EQ(parsed("split(0),replicated"), message("split(0),replicated", "replicated"));
  EXPECT_EQ(parsed("replicate,whole"), message("replicate,whole", "whole"));
  for (std::string_view bad : {"", "split", "split()", "split(-1)", "split(a)", "split(0", "split(0/0)", "split(0/-2)",
                               "split(0/)", "split(/2)", "split(0/2/3)", "split(99999999999)", "Split(0)"})
    EXPECT_EQ(parsed(bad), message(bad, bad));
  EXPECT_EQ(parsed("split(0),"), message("split(0),", ""));
  EXPECT_EQ(parsed(",split(0)"), message(",split(0)", ""));
}

TEST(TilingCheck, Errors) {
  const Mesh mesh{{2, 2}};
  const Shape shape{8, 6};
  const auto checked = [&](const Tiling& tiling) {
    return error_of([&] { check(tiling, shape, mesh, "pin of fc6.weight"); });
  };
  EXPECT_EQ(checked({split(0), partial()}), "no error");
  EXPECT_EQ(checked({split(0, 8), split(1, 6)}), "no error");
  EXPECT_EQ(checked({split(0)}),
            "pin of fc6.weight: entries of tiling split(0), got 1 expected 2, one per cut of the mesh 2x2. name "
            "split(DIM) or replicate for each cut, with commas between them");
  EXPECT_EQ(
      error_of([&] { check({replicate()}, shape, Mesh{}, "pin of fc6.weight"); }),
      "pin of fc6.weight: entries of tiling replicate, got 1 expected 0, one per cut of the mesh 1. one rank has no "
      "cuts: leave it out");
  EXPECT_EQ(checked({split(2), replicate()}),
            "pin of fc6.weight: dim split by tiling split(2),replicate, got 2 expected a dim of a tensor of shape 8x6, "
            "counted from 0. split a dim the tensor has");
  EXPECT_EQ(checked({replicate(), split(1, 7)}),
            "pin of fc6.weight: unit of dim 1 in tiling replicate,split(1/7), got 7 expected 1 to 6, the dim's extent. "
            "leave the unit out");
  EXPECT_EQ(checked({split(1, 0), replicate()}),
            "pin of fc6.weight: unit of dim 1 in tiling split(1/0),replicate, got 0 expected 1 to 6, the dim's extent. "
            "leave the unit out");
  EXPECT_EQ(checked({split(1, 2), split(1, 3)}),
            "pin of fc6.weight: units of dim 1 in tiling split(1/2),split(1/3), got 2 and 3 expected one for all cuts. "
            "give each cut the same unit");
}

} // namespace
