// Predictions in words, rows over rank counts, and the lists of counts.
#include "simulate/report.hpp"

#include "base/error.hpp"
#include "unit/machine/example.hpp"

#include <gtest/gtest.h>

namespace soybean::simulate {
namespace {

Step step_of(double forward, double backward, double update, double waiting, std::size_t layers = 2) {
  Step step{.seconds = forward + backward + update + waiting,
            .computing = {forward, backward, update},
            .waiting = waiting,
            .transferring = 2 * waiting,
            .flops = 1e9};
  step.layers.resize(layers);
  step.layers[0] = {.computing = forward + backward + update, .waiting = waiting};
  return step;
}

TEST(Report, SaysHowLongAndWhereItGoes) {
  graph::Graph graph;
  graph.layers = {{.name = "fc1", .op = "dense"}};
  const machine::Machine machine = machine::parse_machine(machine::example_text(), "m.toml");
  const machine::Setting setting = machine::make_setting(machine, {}, machine::Precision::fp32);

  EXPECT_EQ(report(setting, graph, 100, step_of(0.001, 0.002, 0.0005, 0.0015), step_of(0.001, 0.002, 0.0005, 0.0065)),
            "predicted on example: 5.00 ms per step, 20000.0 samples/s, 2.00 times data parallelism (10.00 ms)\n"
            "  forward 20.0 %, backward 40.0 %, update 10.0 %, packing 0.0 %, waiting for transfers 30.0 % (1.50 ms of "
            "3.00 ms hidden); 20.0 % of the processor's peak\n"
            "  layer                      computing     packing     waiting   of step\n"
            "  fc1                          3.50 ms           -     1.50 ms   100.0 %\n");
}

TEST(Report, RowsOverRankCounts) {
  const Point one{
      .ranks = 1, .batch = 64, .strategy = "auto", .step = step_of(1, 2, 1, 0), .data = step_of(1, 2, 1, 0)};
  const Point two{.ranks = 2,
                  .batch = 64,
                  .strategy = "auto",
                  .planning_seconds = 0.25,
                  .step = step_of(0.5, 1, 0.5, 0.5),
                  .data = step_of(0.5, 1, 0.5, 3),
                  .bytes = 1000,
                  .data_bytes = 5000};

  EXPECT_EQ(table_head("auto"),
            " ranks    batch        auto   samples/s   eff.   waiting        moved        data   waiting        moved "
            "speed-up  planning\n");
  EXPECT_EQ(table_row(two, one),
            "     2       64      2.50 s        25.6   0.80    20.0 %      1.00 kB      5.00 s    60.0 %      5.00 kB "
            "    2.00    0.25 s\n");
  EXPECT_EQ(csv_row(two, one), "2,64,auto,2.5,2,0,0.5,1000,25.6,0.8,5,2,0,3,5000,2,0.25\n");
  const std::string head = csv_head(), row = csv_row(two, one);
  EXPECT_EQ(std::count(head.begin(), head.end(), ','), std::count(row.begin(), row.end(), ','));
}

TEST(Report, Seconds) {
  EXPECT_EQ(seconds_text(0), "-");
  EXPECT_EQ(seconds_text(12.34e-6), "12.3 us");
  EXPECT_EQ(seconds_text(12.34e-3), "12.34 ms");
  EXPECT_EQ(seconds_text(12.34), "12.34 s");
}

TEST(Report, ListsOfRankCounts) {
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
                "--simulate: got \"" + std::string(bad) +
                    "\" expected rank counts from 1 to 1048576 that ascend. 1..4096 stands for 1, 2, 4, … 4096; others "
                    "are listed: 1,2,6");
    }
  }
}

} // namespace
} // namespace soybean::simulate
