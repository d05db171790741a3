#include "base/error.hpp"
#include "random_tilings.hpp"
#include "simulated_ranks.hpp"
#include "tiling/redistribution.hpp"

#include <gtest/gtest.h>

#include <map>

namespace {

using namespace soybean;
using namespace soybean::tiling;

/// Entry kinds of each step, such as "reduce_scatter(0) exchange".
std::string outline(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", to_string(step.kind));
    if (step.cut >= 0)
      text +=
          step.cuts == 1 ? fmt::format("({})", step.cut) : fmt::format("({}-{})", step.cut, step.cut + step.cuts - 1);
  }
  return text;
}

std::int64_t cost(const std::vector<int>& cuts, const Shape& shape, const Tiling& from, const Tiling& to) {
  return elements_moved({cuts}, {shape, {}}, from, to);
}

// ---- formulas ----

TEST(Redistribution, EqualTilingsNeedNothing) {
  const Shape shape{6, 5};
  EXPECT_TRUE(path({{2, 2}}, {shape, {}}, {split(0), partial()}, {split(0), partial()}).empty());
  EXPECT_EQ(cost({2, 2}, shape, {split(0), partial()}, {split(0), partial()}), 0);
  EXPECT_TRUE(path({}, {shape, {}}, {}, {}).empty());
}

TEST(Redistribution, OneCut) {
  const Shape shape{8, 6}; // 48 elements, blocks of 12 on four ranks
  EXPECT_EQ(cost({4}, shape, {split(0)}, {replicate()}), 4 * 3 * 12);
  EXPECT_EQ(cost({4}, shape, {replicate()}, {split(0)}), 0);
  EXPECT_EQ(cost({4}, shape, {partial()}, {split(0)}), 3 * 48);
  EXPECT_EQ(cost({4}, shape, {partial()}, {replicate()}), 2 * 3 * 48);
  // All-to-all: each rank keeps a quarter of its block. Columns are cut 1, 2, 1, 2.
  EXPECT_EQ(cost({4}, shape, {split(0)}, {split(1)}), 48 * 3 / 4);
  EXPECT_EQ(outline(path({{4}}, {shape, {}}, {partial()}, {replicate()})), "all_reduce(0)");
  EXPECT_EQ(outline(path({{4}}, {shape, {}}, {partial()}, {split(1)})), "reduce_scatter(0)");
  EXPECT_EQ(outline(path({{4}}, {shape, {}}, {split(0)}, {split(1)})), "exchange");
}

TEST(Redistribution, UnevenBlocksCountExactly) {
  const Shape shape{7}; // cut 1, 2, 2, 2 on four ranks, 3 + 4 on two
  EXPECT_EQ(cost({4}, shape, {split(0)}, {replicate()}), 3 * 7);
  EXPECT_EQ(cost({2, 2}, shape, {split(0), partial()}, {split(0), replicate()}), 2 * 3 + 2 * 4);
  // Quarters 1, 2, 2, 2: ranks 1 and 2 hold the other half.
  EXPECT_EQ(cost({2, 2}, shape, {replicate(), split(0)}, {split(0), split(0)}), 2 + 2);
}

TEST(Redistribution, DataParallelGradientCostsTwiceTheWeightsPerOtherRank) {
  for (const Mesh& mesh : test_meshes()) {
    const Tiling gradient(mesh.cuts.size(), partial());
    const std::int64_t others = ranks(mesh) - 1;
    for (const Shape& shape : std::vector<Shape>{
             {64, 3, 11, 11}, {4096, 9216}, {10}, {7, 5, 3}, {13}, {3, 2}, {1}, {1, 1, 1}, {2, 3, 1, 1}, {200, 1}}) {
      const Moved tensor{shape, {}};
      EXPECT_EQ(elements_moved(mesh, tensor, gradient, replicated(mesh)), 2 * others * volume(shape));
      if (volume(shape) < 1000) {
        const std::vector<Step> steps = path(mesh, tensor, gradient, replicated(mesh));
        EXPECT_EQ(simulate(mesh, shape, steps, gradient, replicated(mesh)), 2 * others * volume(shape));
      }
    }
    const Shape shape{24 * 4, 5}, units{4, 1}; // and in units of four
    EXPECT_EQ(elements_moved(mesh, {shape, units}, gradient, replicated(mesh)), 2 * others * volume(shape));
  }
}

TEST(Redistribution, ManyCutsAreNoTrouble) {
  const Mesh mesh{std::vector<int>(10, 2)};
  const Tiling gradient(10, partial());
  const Shape shape{256, 191, 3, 3};
  EXPECT_EQ(elements_moved(mesh, {shape, {}}, gradient, replicated(mesh)), 2 * 1023 * volume(shape));
  EXPECT_EQ(elements_moved(mesh, {shape, {}}, gradient, Tiling(10, split(1))), 1023 * volume(shape));
  EXPECT_EQ(outline(path(mesh, {shape, {}}, gradient, replicated(mesh))), "reduce_scatter(0-9) exchange");
}

TEST(Redistribution, ScalarsCanOnlyBeAllReduced) {
  EXPECT_EQ(cost({2, 2, 2}, {}, {partial(), partial(), partial()}, replicated({{2, 2, 2}})), 3 * 4 * 2);
  EXPECT_EQ(cost({3, 2}, {}, {partial(), replicate()}, replicated({{3, 2}})), 2 * 4);
}

TEST(Redistribution, SlicesBeforeItReduces) {
  // The replicated cut is sliced first, so that only half of each term goes over the wire.
  const Shape shape{8, 8};
  const Tiling from{partial(), replicate()}, to{split(0), split(1)};
  EXPECT_EQ(outline(path({{2, 2}}, {shape, {}}, from, to)), "slice(1) reduce_scatter(0)");
  EXPECT_EQ(cost({2, 2}, shape, from, to), 2 * 32);
}

TEST(Redistribution, LaterCutsOfADimStandInTheWay) {
  // Cut 0 can not scatter to the rows that cut 1 has cut already: it takes the columns, and an exchange puts it right.
  const Shape shape{8, 8};
  const Tiling from{partial(), split(0)}, to{split(0), split(0)};
  const std::vector<Step> steps = path({{2, 2}}, {shape, {}}, from, to);
  EXPECT_EQ(outline(steps), "reduce_scatter(0) exchange");
  EXPECT_EQ(steps[0].to, (Tiling{split(1), split(0)}));
  EXPECT_EQ(steps[0].elements, 2 * 32);
}

TEST(Redistribution, NewSplitsTakeTheTargetsUnit) {
  const Mesh mesh{{2}};
  const Shape shape{21}, units{7};
  const std::vector<Step> steps = path(mesh, {shape, units}, {partial()}, {split(0, 3)});
  ASSERT_EQ(outline(steps), "reduce_scatter(0)");
  EXPECT_EQ(steps[0].to, (Tiling{split(0, 3)}));
}

TEST(Redistribution, NewSplitsTakeTheTensorsUnitWhereTheTargetHasNone) {
  const Mesh mesh{{2, 2}};
  const Shape shape{21}, units{7};
  const std::vector<Step> steps = path(mesh, {shape, units}, {partial(), partial()}, replicated(mesh));
  EXPECT_EQ(outline(steps), "reduce_scatter(0-1) exchange");
  EXPECT_EQ(steps[0].to, (Tiling{split(0, 7), split(0, 7)}));
}

TEST(Redistribution, HalvesOfWholeUnitsGoOnInWholeUnits) {
  // In units of 4, halves of 24 are even and so have unit 1 in the normal form; quarters of them have unit 4 again.
  const Mesh mesh{{2, 2}};
  const Shape shape{24}, units{4};
  const std::vector<Step> steps = path(mesh, {shape, units}, {split(0), partial()}, {split(0, 4), split(0, 4)});
  EXPECT_EQ(outline(steps), "reduce_scatter(1)");
  EXPECT_EQ(steps[0].elements, 2 * 12);
  // Halves of 3 and 4 have no units of 2: the split goes on in their own unit, and an exchange follows.
  const Shape odd{7};
  EXPECT_EQ(outline(path(mesh, {odd, {}}, {split(0), partial()}, {split(0, 2), split(0, 2)})),
            "reduce_scatter(1) exchange");
}

TEST(Redistribution, StepsOnTheWayKeepToTheTensorsUnits) {
  const Shape shape{8, 32}, units{1, 4};
  const Mesh mesh{{3, 2}}; // the target's halves are whole units, so its unit reads 1; thirds of 32 are none
  for (const Step& step : path(mesh, {shape, units}, {partial(), split(0)}, {replicate(), split(1)}))
    for (int rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(block(step.to, shape, mesh, rank).offsets[1] % 4, 0) << to_string(step.to);
      EXPECT_EQ(block(step.to, shape, mesh, rank).extents[1] % 4, 0) << to_string(step.to);
    }
}

TEST(Redistribution, PrefersDimsThatLeaveNoRankEmpty) {
  const Mesh mesh{{2, 2, 2}};
  const Shape shape{3, 64};
  const std::vector<Step> steps = path(mesh, {shape, {}}, Tiling(3, partial()), replicated(mesh));
  ASSERT_EQ(outline(steps), "reduce_scatter(0-2) exchange");
  EXPECT_EQ(steps[0].to, (Tiling{split(1), split(1), split(1)}));
}

TEST(Redistribution, ReduceScattersOfOneDimOverNeighbouringCutsAreOne) {
  const Shape shape{12, 12};
  const Tiling sum(3, partial());
  EXPECT_EQ(outline(path({{2, 3, 2}}, {shape, {}}, sum, Tiling(3, split(0)))), "reduce_scatter(0-2)");
  EXPECT_EQ(outline(path({{2, 3, 2}}, {shape, {}}, sum, {split(0), split(1), split(1)})),
            "reduce_scatter(0) reduce_scatter(1-2)");
  EXPECT_EQ(outline(path({{2, 3, 2}}, {shape, {}}, sum, {split(0), split(1), split(0)})),
            "reduce_scatter(0) reduce_scatter(1) reduce_scatter(2)");
  const Tiling gap{partial(), split(1), partial()};
  EXPECT_EQ(outline(path({{2, 3, 2}}, {shape, {}}, gap, {split(0), split(1), split(0)})),
            "reduce_scatter(0) reduce_scatter(2)");
}

TEST(Redistribution, ExchangeOfNothingIsALocalCopy) {
  const Shape shape{4, 4};
  const std::vector<Step> steps = path({{2}}, {shape, {}}, {replicate()}, {split(1)});
  ASSERT_EQ(outline(steps), "exchange");
  EXPECT_EQ(steps[0].elements, 0);
}

TEST(Redistribution, PartialTargetsAreRefused) {
  const Shape shape{4, 4};
  EXPECT_THROW(cost({2}, shape, {replicate()}, {partial()}), Bug);
  EXPECT_THROW(cost({2, 2}, shape, {partial(), partial()}, {partial(), replicate()}), Bug);
  EXPECT_THROW(path({{2, 2}}, {shape, {}}, {partial(), split(0)}, {partial(), replicate()}), Bug);
}

TEST(Redistribution, StepKindNames) {
  EXPECT_EQ(to_string(StepKind::slice), "slice");
  EXPECT_EQ(to_string(StepKind::reduce_scatter), "reduce_scatter");
  EXPECT_EQ(to_string(StepKind::all_reduce), "all_reduce");
  EXPECT_EQ(to_string(StepKind::exchange), "exchange");
}

// ---- against simulated ranks ----

/// The rules of the header: what each step may do after the one before.
void expect_legal(const std::vector<Step>& steps, const Tiling& from, const Tiling& to) {
  Tiling now = from;
  for (const Step& step : steps) {
    ASSERT_EQ(step.from, now);
    ASSERT_NE(step.from, step.to);
    if (step.kind == StepKind::exchange) {
      ASSERT_FALSE(has_partial(step.from));
      ASSERT_EQ(&step, &steps.back());
      ASSERT_EQ(step.cut, -1);
    } else {
      ASSERT_TRUE(has_partial(step.from)) << "moves end with the last partial cut";
      ASSERT_TRUE(step.cuts == 1 || step.kind == StepKind::reduce_scatter);
      const auto first = static_cast<std::size_t>(step.cut), end = first + static_cast<std::size_t>(step.cuts);
      for (std::size_t cut = first; cut < end; ++cut) {
        ASSERT_EQ(step.from[cut].kind, step.kind == StepKind::slice ? Kind::replicate : Kind::partial);
        ASSERT_EQ(step.to[cut].kind, step.kind == StepKind::all_reduce ? Kind::replicate : Kind::split);
        ASSERT_EQ(step.to[cut].dim, step.to[first].dim);
      }
      for (std::size_t other = 0; other < now.size(); ++other) {
        if (first <= other && other < end) continue;
        ASSERT_EQ(step.to[other].kind, now[other].kind);
        ASSERT_EQ(step.to[other].dim, now[other].dim);
        if (step.to[first].kind == Kind::split && other >= end) {
          ASSERT_NE(step.to[other].dim, step.to[first].dim);
        }
      }
    }
    now = step.to;
  }
  ASSERT_EQ(now, to);
}

TEST(Redistribution, SimulatedRanksEndWithTheSumAndReceiveThePlannedElements) {
  Draw draw(5);
  std::map<std::string, int> outlines;
  for (int round = 0; round < 1500; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(static_cast<int>(draw.number(0, 3)), draw.number(1, 9));
    const Shape units = draw.units(shape);
    const Tiling from = normalise(draw.tiling(mesh, shape, draw.units(shape), 2), shape, mesh);
    const Tiling to = normalise(draw.tiling(mesh, shape, units), shape, mesh);
    const std::vector<Step> steps = path(mesh, {shape, units}, from, to);
    SCOPED_TRACE(fmt::format("{} on {}: {} -> {}: {}", soybean::to_string(shape), to_string(mesh), to_string(from),
                             to_string(to), outline(steps)));

    ASSERT_NO_FATAL_FAILURE(expect_legal(steps, from, to));
    std::int64_t planned = 0;
    for (const Step& step : steps) planned += step.elements;
    ASSERT_EQ(planned, elements_moved(mesh, {shape, units}, from, to));
    ASSERT_EQ(planned, simulate(mesh, shape, steps, from, to));
    ++outlines[outline(steps)];
  }
  EXPECT_GT(outlines.size(), 40u); // the draw reaches all kinds of sequences
}

// ---- against all legal sequences ----

/// The cheapest cost from a tiling by trying every sequence of moves, counting in boxes.
class Exhaustive {
public:
  Exhaustive(const Mesh& mesh, const Shape& shape, const Shape& units, const Tiling& to)
      : mesh_(mesh), shape_(shape), units_(units), to_(to) {}

  std::pair<std::int64_t, int> best(const Tiling& from) {
    const auto known = known_.find(from);
    if (known != known_.end()) return known->second;
    std::pair<std::int64_t, int> least{lacking(from), from == to_ ? 0 : 1};
    if (has_partial(from)) {
      least.first = std::numeric_limits<std::int64_t>::max();
      for (std::size_t cut = 0; cut < from.size(); ++cut) consider(from, cut, least);
    }
    return known_[from] = least;
  }

private:
  std::int64_t lacking(const Tiling& from) const {
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks(mesh_); ++rank) {
      const Box needed = block(to_, shape_, mesh_, rank);
      sum += volume(needed) - volume(intersect(needed, block(from, shape_, mesh_, rank)));
    }
    return sum;
  }

  void consider(const Tiling& from, std::size_t cut, std::pair<std::int64_t, int>& least) {
    if (from[cut].kind == Kind::split) return;
    const bool partial = from[cut].kind == Kind::partial;
    std::int64_t received = 0; // of a reduce-scatter: all ranks but one of each group take the place of the sender
    for (int rank = 0; rank < ranks(mesh_); ++rank)
      if (coordinate(mesh_, rank, static_cast<int>(cut)) != 0) received += volume(block(from, shape_, mesh_, rank));
    const auto take = [&](const Tiling& next, std::int64_t elements) {
      auto [rest, steps] = best(normalise(next, shape_, mesh_));
      least = std::min(least, {rest + elements, steps + 1});
    };
    Tiling next = from;
    next[cut] = replicate();
    if (partial) take(next, 2 * received);
    for (int dim = 0; dim < static_cast<int>(shape_.size()); ++dim) {
      const auto splits = [&](const Entry& e) { return e.kind == Kind::split && e.dim == dim; };
      if (std::any_of(from.begin() + static_cast<std::ptrdiff_t>(cut), from.end(), splits)) continue;
      take(with_split(from, cut, dim), partial ? received : 0);
    }
  }

  Tiling with_split(const Tiling& from, std::size_t cut, int dim) const {
    const auto splits = [&](const Entry& e) { return e.kind == Kind::split && e.dim == dim; };
    const auto target = std::ranges::find_if(to_, splits);
    const std::int64_t wanted = target == to_.end() ? units_[static_cast<std::size_t>(dim)] : target->unit;
    Tiling next = from;
    for (Entry& e : next)
      if (splits(e)) e.unit = wanted;
    for (int rank = 0; rank < ranks(mesh_); ++rank)
      if (block(next, shape_, mesh_, rank) != block(from, shape_, mesh_, rank)) next = from;
    const auto own = std::ranges::find_if(next, splits);
    next[cut] = split(dim, own == next.end() ? wanted : own->unit);
    return next;
  }

  const Mesh& mesh_;
  const Shape& shape_;
  const Shape& units_;
  const Tiling& to_;
  std::map<Tiling, std::pair<std::int64_t, int>> known_;
};

TEST(Redistribution, IsTheCheapestOfAllSequences) {
  Draw draw(6);
  for (int round = 0; round < 1500; ++round) {
    const Mesh mesh = draw.one_of(test_meshes());
    const Shape shape = draw.shape(static_cast<int>(draw.number(1, 3)), draw.number(1, 24));
    const Shape units = draw.units(shape);
    const Tiling from =
        normalise(draw.tiling(mesh, shape, draw.number(0, 2) ? units : draw.units(shape), 2), shape, mesh);
    const Tiling to = normalise(draw.tiling(mesh, shape, units), shape, mesh);
    const auto [least, steps] = Exhaustive(mesh, shape, units, to).best(from);
    ASSERT_EQ(elements_moved(mesh, {shape, units}, from, to), least)
        << soybean::to_string(shape) << " units " << soybean::to_string(units) << " on " << to_string(mesh) << ": "
        << to_string(from) << " -> " << to_string(to);
    int moves = 0;
    for (const Step& step : path(mesh, {shape, units}, from, to)) moves += step.cuts;
    ASSERT_EQ(moves, steps);
  }
}

} // namespace
