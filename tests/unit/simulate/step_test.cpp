// Predicted steps: small ones by hand, and what must hold for all.
#include "simulate/step.hpp"

#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/operator.hpp"
#include "plan/planner.hpp"
#include "support/random_graph.hpp"
#include "support/small_machine.hpp"
#include "unit/machine/example.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace soybean::simulate {
namespace {

machine::Setting setting_of(const tiling::Mesh& mesh, double overlap = 0.5) {
  machine::Machine machine = machine::parse_machine(machine::example_text(), "m.toml");
  machine.overlap = overlap;
  machine.rates(machine::Precision::fp64) = machine.rates(machine::Precision::fp32);
  return machine::make_setting(machine, mesh, machine::Precision::fp32);
}

graph::Graph mlp(std::int64_t batch, std::int64_t width) {
  graph::Graph graph;
  graph.name = "mlp";
  graph::TensorId x = ops::input_source(graph, batch, {width});
  x = ops::activate(graph, "relu", ops::dense_layer(graph, "fc1", x, {.units = width}));
  x = ops::dense_layer(graph, "fc2", x, {.units = width});
  ops::loss_layer(graph, x);
  ops::add_backward_and_update(graph, {.momentum = 0.9});
  return graph;
}

double sum(const std::array<double, 3>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(Predict, OneRankTakesTheSumOfItsKernels) {
  const graph::Graph graph = mlp(64, 32);
  const machine::Setting one = setting_of({});
  const plan::Plan plan = plan::make_plan(graph, {}, {});

  const Step step = predict(one, graph, plan, {"fuse"});

  double expected = 0, flops = 0;
  for (const graph::Node& node : graph.nodes) {
    expected += machine::node_seconds(one, graph, node, ops::form(graph, node), {});
    flops += ops::flops(graph, node);
  }
  EXPECT_NEAR(step.seconds, expected, 1e-12);
  EXPECT_NEAR(step.flops, flops, 1e-6 * flops);
  EXPECT_EQ(step.waiting, 0);
  EXPECT_EQ(step.transferring, 0);
}

TEST(Predict, FusedKernelsAreLaunchedOnceAndWriteOnce) {
  const graph::Graph graph = mlp(64, 32);
  const machine::Setting one = setting_of({});
  const plan::Plan plan = plan::make_plan(graph, {}, {});

  const double apart = predict(one, graph, plan, {"fuse"}).seconds, fused = predict(one, graph, plan).seconds;

  // bias of fc1, relu and bias of fc2 are no kernels any more: of each the launch and the way of its operand and result
  // through memory are gone, of the biases the vector stays
  const auto kernel = [&](std::string_view op, double flops, double bytes) {
    return machine::kernel_seconds(one, op, {flops, bytes});
  };
  const double matrix = 64 * 32 * 4, vector = 32 * 4, weight = 32 * 32 * 4, flops = 2.0 * 64 * 32 * 32, n = 64 * 32;
  const double before = 2 * kernel("dense", flops, 2 * matrix + weight) + 2 * kernel("bias", n, 2 * matrix + vector) +
                        kernel("relu", n, 2 * matrix);
  const double after = kernel("dense", flops + 2 * n, 2 * matrix + weight + vector) +
                       kernel("dense", flops + n, 2 * matrix + weight + vector);
  EXPECT_NEAR(apart - fused, before - after, 1e-12);
}

TEST(Predict, WaitsForEveryTransferOfTodaysPrograms) {
  const graph::Graph graph = mlp(64, 32);
  const tiling::Mesh mesh{{2, 2}};
  const machine::Setting setting = setting_of(mesh);
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  program::Program program = program::lower(graph, plan, program::Mode::train);

  const Step step = predict(setting, graph, plan, program);

  double network = 0;
  for (const program::Instruction& i : program.instructions)
    if (i.kind == program::Kind::start)
      network += machine::step_seconds(setting, graph.tensors[program.buffers[i.inputs[0]].tensor], i.step).network;
  EXPECT_GT(network, 0);
  EXPECT_NEAR(step.transferring, network, 1e-12);
  EXPECT_NEAR(step.waiting, network, 1e-12); // each wait follows its start
}

/// The plan's program with each wait put off by so many instructions, as far as nothing in between reads the result.
program::Program put_off(program::Program program, std::size_t by) {
  std::vector<program::Instruction>& all = program.instructions;
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].kind != program::Kind::wait) continue;
    const auto start = std::find_if(all.begin(), all.end(), [&](const program::Instruction& s) {
      return s.kind == program::Kind::start && s.token == all[i].token;
    });
    const program::BufferId result = start->outputs[0];
    std::size_t at = i;
    while (at + 1 < all.size() && at - i < by && all[at + 1].kind == program::Kind::compute &&
           std::count(all[at + 1].inputs.begin(), all[at + 1].inputs.end(), result) == 0) {
      std::swap(all[at], all[at + 1]);
      ++at;
    }
  }
  return program;
}

TEST(Predict, TransfersHideBehindKernelsAsFarAsTheMachineLets) {
  const tiling::Mesh mesh{{2}};
  graph::Graph graph = mlp(512, 64);
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  program::Program program = program::lower(graph, plan, program::Mode::train);
  for (program::Instruction& i : program.instructions)
    if (i.kind == program::Kind::free) i.inputs.clear();
  std::erase_if(program.instructions, [](const auto& i) { return i.kind == program::Kind::free; });
  const program::Program later = put_off(program, 3);

  const Step at_once = predict(setting_of(mesh, 1), graph, plan, program);
  const Step none = predict(setting_of(mesh, 0), graph, plan, later);
  const Step some = predict(setting_of(mesh, 0.002), graph, plan, later);
  const Step full = predict(setting_of(mesh, 1), graph, plan, later);

  EXPECT_NEAR(none.seconds, at_once.seconds, 1e-12);
  EXPECT_LT(some.seconds, none.seconds);
  EXPECT_LT(full.seconds, some.seconds);
  for (const Step* step : {&at_once, &none, &some, &full}) {
    EXPECT_NEAR(step->seconds, sum(step->computing) + step->packing + step->waiting, 1e-12);
    EXPECT_NEAR(step->transferring, at_once.transferring, 1e-12);
    EXPECT_GE(step->waiting, 0);
  }
}

TEST(Predict, TheBatchIsReadBeforeTheProgram) {
  const graph::Graph graph = mlp(64, 32);
  const tiling::Mesh mesh{{2}};
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  machine::Setting setting = setting_of(mesh);
  const Step before = predict(setting, graph, plan);
  setting.machine.batch = {.seconds = 1e-3, .bandwidth = 1e6};

  const Step step = predict(setting, graph, plan);

  // half of the rows' inputs, labels and weights, and the step's scalars
  double bytes = 0;
  for (const graph::Tensor& t : graph.tensors) {
    const auto size = static_cast<double>(volume(t.shape) * size_of(t.dtype));
    if (t.role == graph::Role::input || t.role == graph::Role::label || t.role == graph::Role::sample_weight)
      bytes += size / 2;
    if (t.role == graph::Role::hyper) bytes += size;
  }
  EXPECT_NEAR(step.reading, 1e-3 + bytes / 1e6, 1e-12);
  EXPECT_NEAR(step.seconds, before.seconds + step.reading, 1e-12);
  EXPECT_EQ(before.reading, 0);
  EXPECT_GE(step.timeline.front().begin, step.reading);
}

TEST(Predict, HiddenPartByHand) {
  // One transfer of t seconds, started before a kernel of k seconds and waited for after it.
  const tiling::Mesh mesh{{2}};
  graph::Graph graph = mlp(512, 64);
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  program::Program program = program::lower(graph, plan, program::Mode::train);
  const auto is = [](program::Kind kind) { return [kind](const program::Instruction& i) { return i.kind == kind; }; };
  std::vector<program::Instruction>& all = program.instructions;
  const program::Instruction start = *std::find_if(all.begin(), all.end(), is(program::Kind::start));
  const program::Instruction kernel = *std::find_if(all.begin(), all.end(), is(program::Kind::compute));
  const program::Instruction wait{.kind = program::Kind::wait, .node = start.node, .token = start.token};
  program.instructions = {start, kernel, wait};
  const machine::Setting setting = setting_of(mesh, 0.5);
  const machine::StepSeconds move =
      machine::step_seconds(setting, graph.tensors[program.buffers[start.inputs[0]].tensor], start.step);
  const graph::Node& node = graph.nodes[kernel.node];
  const double k = machine::node_seconds(setting, graph, node, ops::form(graph, node), plan.choices[kernel.node]);

  const Step step = predict(setting, graph, plan, program);

  EXPECT_NEAR(step.waiting, std::max(0.0, move.network - 0.5 * k), 1e-12);
  EXPECT_NEAR(step.seconds, move.local + k + step.waiting, 1e-12);
  ASSERT_EQ(std::count_if(step.timeline.begin(), step.timeline.end(), [](const Interval& i) { return i.network; }), 1);
}

TEST(Predict, HoldsTogetherForRandomGraphs) {
  const tiling::Mesh mesh{{2, 3}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.precision = DType::f32});
    const plan::Plan plan = plan::make_plan(graph, mesh, {});
    machine::Setting setting = setting_of(mesh), slower = setting;
    for (machine::Link& link : slower.machine.links) link.bandwidth /= 100;
    slower = machine::make_setting(slower.machine, mesh, slower.precision);

    const Step step = predict(setting, graph, plan);

    double layers = 0, kernels_end = 0, transfers_end = 0, kernels = 0;
    for (const LayerSeconds& layer : step.layers) layers += layer.computing + layer.packing + layer.waiting;
    for (const Interval& i : step.timeline) {
      double& end = i.network ? transfers_end : kernels_end;
      EXPECT_GE(i.begin, end - 1e-15); // one after the other
      end = i.end;
      if (!i.network) kernels += i.end - i.begin;
    }
    EXPECT_NEAR(layers, step.seconds, 1e-9 * step.seconds);
    EXPECT_NEAR(kernels, sum(step.computing) + step.packing, 1e-9 * step.seconds);
    EXPECT_LE(std::max(kernels_end, transfers_end), step.seconds * (1 + 1e-12));
    const Step slow = predict(slower, graph, plan);
    EXPECT_GE(slow.seconds, step.seconds);
    EXPECT_EQ(slow.computing, step.computing);
  }
}

/// What a search for time minimises is the step's, where nothing is fused.
TEST(Step, takes_as_long_as_a_plan_for_time_says) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const graph::Graph graph = support::random_graph(seed, {.layers = 4});
    const machine::Setting setting = support::small_hosts(tiling::Mesh{{2, 2}}, 8);
    const plan::Plan plan = plan::make_plan(graph, setting.mesh, {.machine = &setting});
    const double planned = 1e-9 * static_cast<double>(plan.nanoseconds);
    EXPECT_NEAR(planned, predict(setting, graph, plan, {"fuse"}).seconds, 1e-2 * planned) << "seed " << seed;
  }
}

} // namespace
} // namespace soybean::simulate
