// Rows over rank counts, and lists of rank counts.
#include "explain/sweep.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace soybean::explain {
namespace {

simulate::Step step_of(double forward, double backward, double update, double waiting) {
  return {
      .seconds = forward + backward + update + waiting, .computing = {forward, backward, update}, .waiting = waiting};
}

SweepPoint point(int ranks, bool timed) {
  SweepPoint point{.ranks = ranks, .batch = 64, .status = "proven optimal", .planning_seconds = 0.25, .plans = {}};
  point.plans = {{{.strategy = "auto", .bytes = 1000, .step = {}},
                  {.strategy = "data", .bytes = 5000, .step = {}},
                  {.strategy = "model", .bytes = 2500, .step = {}}}};
  if (!timed) return point;
  point.plans[0].step = ranks == 1 ? step_of(1, 2, 1, 0) : step_of(0.5, 1, 0.5, 0.5);
  point.plans[1].step = step_of(0.5, 1, 0.5, 3);
  point.plans[2].step = step_of(0.5, 1, 0.5, 2);
  return point;
}

TEST(Sweep, RowsWithoutAMachine) {
  const SweepPoint first = point(1, false), two = point(2, false);
  EXPECT_EQ(sweep_head(first),
            "  ranks    batch          auto         data        model    data /  model /   planning\n");
  EXPECT_EQ(sweep_row(two, first), "      2       64       1.00 kB      5.00 kB      2.50 kB      5.00     2.50     "
                                   "0.25 s  proven optimal\n");
  EXPECT_EQ(sweep_csv_row(two, first), "2,64,auto,proven optimal,1000,5000,2500,,,,,,,,,,,,,,,,0.25\n");
}

TEST(Sweep, RowsWithAMachine) {
  const SweepPoint first = point(1, true), two = point(2, true);
  const std::string head = sweep_head(first), row = sweep_row(two, first);
  EXPECT_EQ(row,
            "      2       64      2.50 s      1.00 kB   20.0 %        25.6  0.80      5.00 s      5.00 kB     2.00 "
            "     4.00 s      2.50 kB     0.25 s  proven optimal\n");
  EXPECT_LE(head.size(), row.size());
  EXPECT_EQ(sweep_csv_row(two, first),
            "2,64,auto,proven optimal,1000,5000,2500,2.5,2,0,0.5,25.6,0.8,5,2,0,3,4,2,0,2,2,0.25\n");
}

TEST(Sweep, EveryRowHasAValueForEachColumn) {
  const std::string head = sweep_csv_head();
  for (const bool timed : {false, true}) {
    const std::string row = sweep_csv_row(point(2, timed), point(1, timed));
    EXPECT_EQ(std::count(head.begin(), head.end(), ','), std::count(row.begin(), row.end(), ','));
  }
}

TEST(Sweep, APlanThatMovesNothingHasNoRatio) {
  SweepPoint one = point(1, false);
  for (SweepPlan& plan : one.plans) plan.bytes = 0;
  EXPECT_NE(sweep_row(one, one).find("-        -"), std::string::npos) << sweep_row(one, one);
}

TEST(Sweep, ListsOfRankCounts) {
  EXPECT_EQ(read_rank_counts("1..8"), std::vector<int>({1, 2, 4, 8}));
  EXPECT_EQ(read_rank_counts("3..10"), std::vector<int>({3, 6, 10}));
  EXPECT_EQ(read_rank_counts("5..5"), std::vector<int>({5}));
  EXPECT_EQ(read_rank_counts("1,2,6"), std::vector<int>({1, 2, 6}));
  EXPECT_EQ(read_rank_counts("12"), std::vector<int>({12}));
  for (const char* bad : {"", "0", "1,", "2,1", "2,2", "8..4", "1..", "..4", "1...4", "1..2000000", "a", "1, 2"}) {
    try {
      read_rank_counts(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "--sweep: got \"" + std::string(bad) +
                    "\" expected rank counts from 1 to 1048576 that ascend. 1..1024 stands for 1, 2, 4, … 1024; others "
                    "are listed: 1,2,6");
    }
  }
}

} // namespace
} // namespace soybean::explain
