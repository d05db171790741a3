// Predictions in words.
#include "simulate/report.hpp"

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

  Step step = step_of(0.001, 0.002, 0.0005, 0.0015);
  step.reading = 0.001;
  EXPECT_NE(summary(setting, 100, step, step).find("\n  reading the batch 20.0 %\n"), std::string::npos);
}

} // namespace
} // namespace soybean::simulate
