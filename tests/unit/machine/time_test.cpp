// Prices of kernels and moves: small cases by hand, and what must hold for all of them.
#include "machine/time.hpp"

#include "base/error.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/operator.hpp"
#include "support/random_graph.hpp"
#include "unit/machine/example.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace soybean::machine {
namespace {

using tiling::partial;
using tiling::replicate;
using tiling::split;
using tiling::StepKind;
using tiling::Tiling;

Machine example() {
  return parse_machine(example_text(), "m.toml");
}

Setting setting_of(std::vector<int> cuts, const Machine& machine = example()) {
  return make_setting(machine, tiling::Mesh{std::move(cuts)}, Precision::fp32);
}

/// A matrix of so many elements.
graph::Tensor matrix(std::int64_t rows, std::int64_t columns) {
  return {.name = "m", .shape = {rows, columns}, .units = {1, 1}};
}

double network(const Setting& setting, const graph::Tensor& tensor, const Tiling& from, const Tiling& to) {
  return move_seconds(setting, tensor, from, to).network;
}

TEST(KernelSeconds, IsTheSlowerOfArithmeticAndMemory) {
  const Setting one = setting_of({});
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "dense", {8e9, 0}), 1e-6 + (8e9 + 1e5) / 8e11);
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "conv2d", {5e9, 1}), 1e-6 + (5e9 + 1e5) / 5e11);
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "conv2d_grad_weight", {4e9, 1}), 1e-6 + (4e9 + 1e5) / 4e11);
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "relu", {1e9, 0}), 1e-6 + 1e9 / 1e11);
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "relu", {1, 400}), 1e-6 + 400 / 4e9); // all of it in the cache
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "relu", {1, 5000}), 1e-6 + 1000 / 4e9 + 4000 / 1e9);
  EXPECT_DOUBLE_EQ(kernel_seconds(one, "max_pool_grad", {1, 5000}), 1e-6 + 5000 / 5e8);
}

TEST(KernelSeconds, RatesOfAnOperatorMayDependOnTheSize) {
  Machine machine = example();
  machine.rates(Precision::fp32).operators["dense"] = {{1e6, 1e10}, {1e8, 1e11}};
  EXPECT_DOUBLE_EQ(kernel_seconds(setting_of({}, machine), "dense", {1e6, 0}), 1e-6 + 1e6 / 1e10); // without `half`
  EXPECT_NEAR(kernel_seconds(setting_of({}, machine), "dense", {1e7, 0}), 1e-6 + 1e7 / std::sqrt(1e21), 1e-9);
  machine.processor.shared = true; // on four ranks: together they do 1e8
  EXPECT_NEAR(kernel_seconds(setting_of({4}, machine), "dense", {2.5e7, 0}), 1e-6 + 4 * 2.5e7 / 1e11, 1e-9);
}

TEST(KernelSeconds, NeverFallsWithMoreWork) {
  Machine machine = example();
  machine.rates(Precision::fp32).operators["conv2d_grad_input"] = {
      {1e4, 1e9}, {1e6, 9.9e10}, {1e9, 5e10}, {1e10, 4e11}};
  const Setting one = setting_of({}, machine);
  for (const std::string_view op : {"dense", "conv2d", "relu", "max_pool_grad", "conv2d_grad_input"}) {
    double before = 0;
    for (double amount = 1; amount < 1e12; amount *= 1.7) {
      const double more_flops = kernel_seconds(one, op, {1.7 * amount, amount});
      const double seconds = kernel_seconds(one, op, {amount, amount});
      EXPECT_GE(seconds, before);
      EXPECT_GE(more_flops, seconds);
      before = seconds;
    }
  }
}

TEST(KernelSeconds, RanksOfAHostShareWhatIsShared) {
  Machine machine = example();
  machine.processor.shared = true;
  const Setting host = setting_of({2, 2}, machine), two_hosts = setting_of({2, 2, 2}, machine);
  EXPECT_DOUBLE_EQ(host.processor_share, 0.25);
  EXPECT_DOUBLE_EQ(two_hosts.processor_share, 0.25);
  EXPECT_DOUBLE_EQ(kernel_seconds(host, "relu", {1e9, 0}), 1e-6 + 4 * 1e9 / 1e11);
  EXPECT_DOUBLE_EQ(kernel_seconds(host, "relu", {1, 1250}), 1e-6 + 4 * (250 / 4e9 + 1000 / 1e9));
}

TEST(KernelSeconds, RanksTakeTurnsOnTooFewCores) {
  Machine machine = example();
  machine.processor.shared = true;
  machine.processor.cores = 2;
  machine.processor.turn = 3e-6;
  const Setting two = setting_of({2}, machine), host = setting_of({2, 2}, machine);
  const graph::Tensor m = matrix(1000, 1000);

  EXPECT_EQ(two.turns, 1); // and with as many cores as ranks nothing changes
  EXPECT_DOUBLE_EQ(kernel_seconds(two, "relu", {1e9, 0}), 1e-6 + 2 * 1e9 / 1e11);
  EXPECT_DOUBLE_EQ(network(two, m, {partial()}, {split(0)}), 1e-6 + 2e6 / 8e9);
  EXPECT_EQ(host.turns, 2); // the launch, too, comes twice; each kernel has its core for itself
  EXPECT_DOUBLE_EQ(kernel_seconds(host, "relu", {1e9, 0}), 2 * (1e-6 + 2 * 1e9 / 1e11));
  EXPECT_DOUBLE_EQ(network(host, m, {replicate(), partial()}, {replicate(), split(0)}), 1e-6 + 3e-6 + 2e6 / 8e9);
  machine.processor.cores = 1; // three others come first
  EXPECT_DOUBLE_EQ(network(setting_of({2, 2}, machine), m, {replicate(), partial()}, {replicate(), split(0)}),
                   1e-6 + 3 * 3e-6 + 2e6 / 8e9);
}

TEST(BatchSeconds, AreSharedLikeKernels) {
  Machine machine = example();
  EXPECT_EQ(batch_seconds(setting_of({}, machine), 1e6), 0);
  machine.batch = {.seconds = 2e-5, .bandwidth = 0};
  EXPECT_DOUBLE_EQ(batch_seconds(setting_of({}, machine), 1e6), 2e-5);
  machine.batch.bandwidth = 1e9;
  machine.processor.shared = true;
  machine.processor.cores = 2;
  EXPECT_DOUBLE_EQ(batch_seconds(setting_of({}, machine), 1e6), 2e-5 + 1e6 / 1e9);
  EXPECT_DOUBLE_EQ(batch_seconds(setting_of({2}, machine), 1e6), 2e-5 + 2 * 1e6 / 1e9);
  EXPECT_DOUBLE_EQ(batch_seconds(setting_of({2, 2}, machine), 1e6), 2 * (2e-5 + 2 * 1e6 / 1e9));
}

TEST(NodeSeconds, AmountsAreThoseOfTheFullestRank) {
  graph::Graph graph;
  const graph::TensorId x = ops::input_source(graph, 10, {6});
  ops::dense_layer(graph, "fc", x, {.units = 5, .bias = false});
  const graph::Node& node = graph.nodes[0]; // b k, n k -> b n
  const ops::Form form = ops::form(graph, node);
  const tiling::Mesh mesh{{3, 2}};

  const Amount split_b_n = amount(graph, node, form, mesh, {0, 2});
  const Amount split_k_twice = amount(graph, node, form, mesh, {1, 1});

  EXPECT_EQ(form.indices[0].name + form.indices[1].name + form.indices[2].name, "bkn");
  EXPECT_DOUBLE_EQ(split_b_n.flops, 2.0 * 4 * 3 * 6); // 10 in 3 blocks: 4 rows; 5 in 2: 3 columns
  EXPECT_DOUBLE_EQ(split_b_n.bytes, 4.0 * (4 * 6 + 3 * 6 + 4 * 3));
  EXPECT_DOUBLE_EQ(split_k_twice.flops, 2.0 * 10 * 5 * 1); // 6 in 6 blocks
  EXPECT_DOUBLE_EQ(split_k_twice.bytes, 4.0 * (10 * 1 + 5 * 1 + 10 * 5));
  const Setting setting = setting_of({3, 2});
  EXPECT_DOUBLE_EQ(node_seconds(setting, graph, node, form, {0, 2}), kernel_seconds(setting, "dense", split_b_n));
}

/// The largest extent that any rank has of every dim: with halos it need not be the last rank.
std::int64_t fullest(const Tiling& tiling, const Shape& shape, const tiling::Mesh& mesh) {
  Shape most(shape.size(), 0);
  for (int rank = 0; rank < tiling::ranks(mesh); ++rank) {
    const Box box = tiling::block(tiling, shape, mesh, rank);
    for (std::size_t d = 0; d < most.size(); ++d) most[d] = std::max(most[d], box.extents[d]);
  }
  return volume(most);
}

TEST(NodeSeconds, AmountsAreTheOperandsBlocks) {
  // The fullest rank's blocks by the tilings that lowering will use, for every choice of every node.
  const tiling::Mesh mesh{{2, 3}};
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    for (const graph::Node& node : graph.nodes) {
      const ops::Form form = ops::form(graph, node);
      const std::vector<ops::Choice> allowed = ops::allowed_choices(form);
      for (const ops::Choice first : allowed)
        for (const ops::Choice second : allowed) {
          const ops::OperandTilings tilings = ops::operand_tilings(form, graph, node, mesh, {first, second});
          double bytes = 0;
          const auto add = [&](graph::TensorId id, const Tiling& tiling) {
            const graph::Tensor& t = graph.tensors[id];
            const std::int64_t elements = tiling::has_halo(tiling) ? fullest(tiling, t.shape, mesh)
                                                                   : volume(tiling::block(tiling, t.shape, mesh, 5));
            bytes += static_cast<double>(elements * size_of(t.dtype));
          };
          for (std::size_t i = 0; i < node.inputs.size(); ++i) add(node.inputs[i], tilings.inputs[i]);
          for (std::size_t i = 0; i < node.outputs.size(); ++i) add(node.outputs[i], tilings.outputs[i]);
          const Amount found = amount(graph, node, form, mesh, {first, second});
          ASSERT_DOUBLE_EQ(found.bytes, bytes) << node.name;
          ASSERT_LE(found.flops, ops::flops(graph, node) * (1 + 1e-12)) << node.name;
          ++compared;
        }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(NodeSeconds, RenamingIsFree) {
  graph::Graph graph;
  const graph::TensorId x = ops::input_source(graph, 4, {2, 3, 3});
  ops::flatten_layer(graph, "flatten", x);
  const graph::Node& node = graph.nodes[0];
  EXPECT_EQ(node_seconds(setting_of({}), graph, node, ops::form(graph, node), {}), 0);
}

TEST(MoveSeconds, RingsUseTheLinksTheyCross) {
  const graph::Tensor m = matrix(1000, 1000); // 4 MB
  const Setting board = setting_of({2}), host = setting_of({2, 2}), hosts = setting_of({2, 2, 2});

  // reduce-scatter in a group of 2: half of the block is received, one round
  EXPECT_DOUBLE_EQ(network(board, m, {partial()}, {split(0)}), 1e-6 + 2e6 / 8e9);
  EXPECT_DOUBLE_EQ(network(board, m, {partial()}, {replicate()}), 2e-6 + 4e6 / 8e9);
  // between the boards of a host: four ranks share the bus
  EXPECT_DOUBLE_EQ(network(host, m, {partial(), replicate()}, {split(0), replicate()}), 2e-6 + 4 * 2e6 / 4e9);
  // inside the boards
  EXPECT_DOUBLE_EQ(network(host, m, {replicate(), partial()}, {replicate(), split(0)}), 1e-6 + 2e6 / 8e9);
  // between hosts: a host's four ranks share its link
  EXPECT_DOUBLE_EQ(network(hosts, m, {partial(), replicate(), replicate()}, {split(0), replicate(), replicate()}),
                   1e-5 + 4 * 2e6 / 1e9);
}

TEST(MoveSeconds, OneCutMayCrossSeveralLevels) {
  // A ring over 8 ranks in order: each host has one flow to the other, each board one to the next one of its host.
  const Setting eight = setting_of({8});
  EXPECT_DOUBLE_EQ(eight.ring(0, 1).latency, 1e-5);
  EXPECT_DOUBLE_EQ(eight.ring(0, 1).seconds_per_byte, 1 / 1e9);
  const graph::Tensor m = matrix(1000, 1000);
  EXPECT_DOUBLE_EQ(network(eight, m, {partial()}, {split(0)}), 7 * 1e-5 + 7 * 0.5e6 / 1e9);
}

TEST(MoveSeconds, SmallAllReducesGoByATree) {
  const Setting eight = setting_of({8});
  EXPECT_DOUBLE_EQ(network(eight, matrix(1, 1), {partial()}, {replicate()}), 6 * (1e-5 + 4 / 1e9));
}

TEST(MoveSeconds, ExchangesUseTheLinksTheyCross) {
  const graph::Tensor m = matrix(1000, 1000);
  const Setting hosts = setting_of({2, 2, 2});
  const Tiling rows = {split(0), split(0), split(0)};

  // gathered on a board: each rank gets the other's eighth
  EXPECT_DOUBLE_EQ(network(hosts, m, rows, {split(0), split(0), replicate()}), 1e-6 + 0.5e6 / 8e9);
  // gathered in a host: two eighths from the other board over the bus that four ranks share
  EXPECT_DOUBLE_EQ(network(hosts, m, rows, {split(0), replicate(), replicate()}), 2e-6 + 4 * 1e6 / 4e9);
  // gathered everywhere: four eighths from the other host over the link that four ranks share
  EXPECT_DOUBLE_EQ(network(hosts, m, rows, {replicate(), replicate(), replicate()}), 1e-5 + 4 * 2e6 / 1e9);
}

TEST(MoveSeconds, ScatteredBlocksArePackedAndUnpacked) {
  const Setting board = setting_of({2});
  const graph::Tensor m = matrix(100, 100); // 40 kB
  const auto copy = [&](double bytes) { return kernel_seconds(board, "", {0, 2 * bytes}); };

  EXPECT_EQ(move_seconds(board, m, {partial()}, {split(0)}).local, 0);
  EXPECT_DOUBLE_EQ(move_seconds(board, m, {partial()}, {split(1)}).local, copy(4e4));
  EXPECT_DOUBLE_EQ(move_seconds(board, m, {split(0)}, {replicate()}).local, copy(2e4));
  EXPECT_DOUBLE_EQ(move_seconds(board, m, {split(0)}, {split(1)}).local, copy(1e4) + 2 * copy(1e4));
  EXPECT_DOUBLE_EQ(move_seconds(board, m, {replicate()}, {split(1)}).local, copy(2e4));
  EXPECT_EQ(move_seconds(board, m, {replicate()}, {split(1)}).network, 0);
}

/// Every tiling of a matrix on the mesh; `sums`: partial entries too.
std::vector<Tiling> tilings_of(const tiling::Mesh& mesh, const graph::Tensor& m, bool sums) {
  std::vector<Tiling> all = {{}};
  for (std::size_t cut = 0; cut < mesh.cuts.size(); ++cut) {
    std::vector<Tiling> longer;
    for (const Tiling& tiling : all)
      for (const tiling::Entry& entry : {replicate(), split(0), split(1), partial()}) {
        if (entry.kind == tiling::Kind::partial && !sums) continue;
        longer.push_back(tiling);
        longer.back().push_back(entry);
      }
    all = longer;
  }
  for (Tiling& tiling : all) tiling = tiling::normalise(tiling, m.shape, mesh);
  return all;
}

TEST(MoveSeconds, SlowerLinksAndMoreBytesAreNeverFaster) {
  const Setting as_is = setting_of({2, 2, 2});
  const graph::Tensor m = matrix(40, 24), larger = matrix(80, 24);
  std::vector<Setting> slower;
  for (std::size_t level = 0; level < 3; ++level) {
    Machine bandwidth = example(), latency = example();
    bandwidth.links[level].bandwidth /= 10;
    latency.links[level].latency *= 10;
    slower.push_back(setting_of({2, 2, 2}, bandwidth));
    slower.push_back(setting_of({2, 2, 2}, latency));
  }
  std::vector<int> took_longer(slower.size(), 0);
  for (const Tiling& from : tilings_of(as_is.mesh, m, true))
    for (const Tiling& to : tilings_of(as_is.mesh, m, false)) {
      const double before = network(as_is, m, from, to);
      EXPECT_GE(network(as_is, larger, from, to), before);
      for (std::size_t s = 0; s < slower.size(); ++s) {
        const double after = network(slower[s], m, from, to);
        EXPECT_GE(after, before);
        took_longer[s] += after > before;
      }
    }
  for (const int count : took_longer) EXPECT_GT(count, 0);
}

TEST(Setting, RefusesWhatTheMachineHasNot) {
  const auto error_of = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of([] { make_setting(example(), {{2}}, Precision::fp64); }),
            "m.toml: processor, got no rates for fp64 expected a table [processor.fp64]. train.precision asks for it");
  Machine small = example();
  small.links.pop_back();
  EXPECT_EQ(error_of([&] {
              make_setting(small, {{2, 4}}, Precision::fp32);
            }),
            "ranks: got 8 expected at most 4, the ranks of machine \"example\" (m.toml). its outermost link says so");
}

TEST(Setting, HostsThatDoNotFitTheCutsAreNotUnderestimated) {
  // 6 ranks on hosts of 4 and 2: no cut lies between the hosts, so all messages between thirds count as leaving them.
  const Setting uneven = setting_of({3, 2});
  EXPECT_EQ(uneven.levels[0].cuts, 2);
  EXPECT_EQ(uneven.levels[1].cuts, 1);
  EXPECT_EQ(uneven.levels[2].cuts, 1);
  EXPECT_DOUBLE_EQ(uneven.ring(0, 1).latency, 1e-5);
  EXPECT_DOUBLE_EQ(uneven.ring(1, 1).latency, 1e-6);
}

} // namespace
} // namespace soybean::machine
