// What else could be done with a layer, and what it would move.
#include "plan/alternatives.hpp"

#include "ops/operator.hpp"
#include "plan/legality.hpp"
#include "plan/planner.hpp"
#include "plan/problem.hpp"
#include "plan/words.hpp"
#include "support/random_graph.hpp"
#include "unit/plan/networks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>

namespace soybean {
namespace {

const tiling::Mesh mesh{{2, 2, 2}};

int layer_named(const graph::Graph& graph, const std::string& name) {
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer)
    if (graph.layers[layer].name == name) return static_cast<int>(layer);
  ADD_FAILURE() << name;
  return 0;
}

/// The node does nothing but `allowed` on any cut.
bool keeps_to(const plan::Plan& plan, graph::NodeId node, const std::vector<ops::Choice>& allowed) {
  return std::all_of(plan.choices[node].begin(), plan.choices[node].end(), [&](ops::Choice choice) {
    return std::find(allowed.begin(), allowed.end(), choice) != allowed.end();
  });
}

/// Bytes of a tensor in the best tiling it can be kept in under the plan's choices; a plan of two ranks.
std::int64_t least_bytes(const graph::Graph& graph, plan::Plan plan, graph::TensorId id) {
  plan::derive_stored(graph, plan);
  if (!plan::is_decided(graph, id)) return plan::cost_bytes(graph, plan, id);
  std::vector<tiling::Tiling> candidates = {{tiling::replicate()}, {tiling::partial()}};
  for (std::size_t d = 0; d < graph.tensors[id].shape.size(); ++d)
    candidates.push_back({tiling::split(static_cast<int>(d))});
  std::int64_t least = plan::never;
  for (const tiling::Tiling& stored : candidates) {
    plan.stored[id] = stored;
    plan::derive_stored(graph, plan);
    if (plan::objection_to_tensor(graph, plan, id).empty()) least = std::min(least, plan::cost_bytes(graph, plan, id));
  }
  return least;
}

/// The least that a layer's tensors move over all choices of its nodes in which those over samples all split the batch,
/// or none does; a plan of two ranks.
std::int64_t least_of_layer(const graph::Graph& graph, plan::Plan plan, int layer, bool batch) {
  std::vector<graph::NodeId> nodes;
  std::set<graph::TensorId> tensors;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    if (node.layer != layer) continue;
    if (node.twin == graph::none) nodes.push_back(static_cast<graph::NodeId>(n));
    tensors.insert(node.inputs.begin(), node.inputs.end());
    for (const graph::TensorId t : node.outputs)
      tensors.insert(graph.tensors[t].previous == graph::none ? t : graph.tensors[t].previous);
  }
  std::int64_t least = plan::never;
  const std::function<void(std::size_t)> choose = [&](std::size_t i) {
    if (i < nodes.size()) {
      const ops::Form form = ops::form(graph, graph.nodes[nodes[i]]);
      const bool over_samples =
          std::any_of(form.indices.begin(), form.indices.end(), [](const auto& x) { return x.batch && x.splittable; });
      for (const ops::Choice choice : ops::allowed_choices(form)) {
        if (over_samples && (choice >= 0 && form.indices[choice].batch) != batch) continue;
        for (std::size_t n = 0; n < graph.nodes.size(); ++n)
          if (static_cast<graph::NodeId>(n) == nodes[i] || graph.nodes[n].twin == nodes[i]) plan.choices[n] = {choice};
        choose(i + 1);
      }
      return;
    }
    std::int64_t sum = 0;
    for (const graph::TensorId t : tensors)
      if (!graph::is_control(graph.tensors[t].role)) sum = std::min(plan::never, sum + least_bytes(graph, plan, t));
    least = std::min(least, sum);
  };
  choose(0);
  return least;
}

const plan::OtherSplit& known(const std::optional<plan::OtherSplit>& split) {
  if (!split) throw std::logic_error("no other split");
  return *split;
}

TEST(Alternatives, other_splits_are_the_best_of_all_there_are) {
  const graph::Graph graph = test::mlp(8, {16, 32, 4});
  for (const std::string strategy : {"auto", "data", "model"}) {
    const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2}}, {.strategy = strategy});
    const std::vector<plan::LayerSplits> splits = plan::layer_splits(graph, plan);
    for (const std::string name : {"fc1", "fc2"}) {
      const int layer = layer_named(graph, name);
      EXPECT_EQ(known(splits[layer].batch).moved.total(), least_of_layer(graph, plan, layer, true))
          << strategy << ' ' << name;
      EXPECT_EQ(known(splits[layer].other).moved.total(), least_of_layer(graph, plan, layer, false))
          << strategy << ' ' << name;
    }
  }
}

TEST(Alternatives, traffic_of_data_parallelism_is_that_of_weights) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  const plan::Plan plan = plan::make_plan(graph, mesh, {.strategy = "data"});
  const plan::Traffic traffic = plan::traffic(graph, plan);
  EXPECT_EQ(traffic.weights, plan.bytes);
  EXPECT_EQ(traffic.activations, 0);
}

TEST(Alternatives, layers_of_alexnet_say_why) {
  const graph::Graph graph = test::alexnet(256);
  const plan::Plan plan = plan::make_plan(graph, mesh, {});
  const std::vector<plan::LayerSplits> splits = plan::layer_splits(graph, plan);
  ASSERT_EQ(splits.size(), graph.layers.size());

  const plan::LayerSplits& conv = splits[layer_named(graph, "conv2")];
  EXPECT_EQ(known(conv.batch).split, "batch/8");
  EXPECT_EQ(known(conv.batch).moved.total(), conv.planned.total()) << "it is what is planned";
  EXPECT_GT(known(conv.other).moved.activations, 10 * conv.planned.total());
  EXPECT_EQ(plan::reason("data", conv).substr(0, 29), "activations outweigh weights ");

  // All weights and their gradients: 2 (P - 1) |W|.
  const plan::LayerSplits& dense = splits[layer_named(graph, "fc6")];
  EXPECT_EQ(known(dense.batch).moved.weights, std::int64_t{2} * 7 * 9216 * 4096 * 4);
  EXPECT_EQ(plan::reason("model", dense).substr(0, 29), "weights outweigh activations ");
}

TEST(Alternatives, reasons_say_what_is_compared) {
  plan::LayerSplits splits{.planned = {100, 0}, .batch = {}, .other = {}};
  EXPECT_EQ(plan::reason("data", splits), "");
  splits.batch = {"batch/8", {100, 0}};
  EXPECT_EQ(plan::reason("data", splits), "no other split");
  splits.other = {"features/8", {0, 1234}};
  EXPECT_EQ(plan::reason("data", splits), "activations outweigh weights 12:1");
  splits.other = {"features/8", {320, 0}};
  EXPECT_EQ(plan::reason("data", splits), "features/8 would move 3.2 times as much");
  splits.other = {"features/8", {40, 0}};
  EXPECT_EQ(plan::reason("data", splits), "features/8 would move 60 B less");
  splits.other = {"features/8", {0, 100}};
  EXPECT_EQ(plan::reason("data", splits), "features/8 would move as much");
  splits.planned = {0, 0};
  EXPECT_EQ(plan::reason("data", splits), "features/8 would move 100 B");
  splits.planned = {0, 10};
  splits.batch = {"batch/8", {405, 2}};
  EXPECT_EQ(plan::reason("model", splits), "weights outweigh activations 41:1");
  EXPECT_EQ(plan::reason("hybrid", splits), "features/8 would move 10 times as much") << "the better of the two";
}

TEST(Alternatives, layers_of_more_ranks_than_samples_say_why) {
  const graph::Graph graph = test::alexnet(16);
  const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{4, 8}}, {}); // no layer can split the batch alone
  const std::vector<plan::LayerSplits> splits = plan::layer_splits(graph, plan);
  for (const std::string name : {"conv1", "conv2", "conv5", "fc6", "fc8"}) {
    const plan::LayerSplits& layer = splits[layer_named(graph, name)];
    const graph::NodeId main = plan::main_node(graph, layer_named(graph, name));
    EXPECT_TRUE(layer.batch || layer.other) << name;
    EXPECT_NE(plan::reason(plan::kind_of(graph, plan, main), layer), "") << name;
  }
}

TEST(Alternatives, no_layer_of_the_best_plan_would_be_better_otherwise) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2, 2, 2}}, {});
    ASSERT_EQ(plan.status, plan::Status::optimal);
    for (const plan::LayerSplits& splits : plan::layer_splits(graph, plan))
      for (const auto& other : {splits.batch, splits.other}) {
        if (!other) continue;
        ++compared;
        EXPECT_GE(other->moved.total(), splits.planned.total()) << seed;
      }
  }
  EXPECT_GT(compared, 25);
}

TEST(Alternatives, a_layer_of_data_parallelism_is_found_again_or_stored_better) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    const plan::Plan plan = plan::make_plan(graph, tiling::Mesh{{2, 2}}, {.strategy = "data"});
    for (const plan::LayerSplits& splits : plan::layer_splits(graph, plan)) {
      if (!splits.batch) continue;
      EXPECT_LE(splits.batch->moved.total(), splits.planned.total()) << seed;
    }
  }
}

TEST(Alternatives, ways_hold_to_their_choices_and_the_plan_is_the_first) {
  const graph::Graph graph = test::alexnet(256);
  const plan::Plan plan = plan::make_plan(graph, mesh, {});
  const graph::NodeId node = plan::main_node(graph, layer_named(graph, "fc6"));

  const plan::Ways ways = plan::ways(graph, plan, node, {});

  ASSERT_GE(ways.found.size(), 3u);
  EXPECT_EQ(ways.planned, 0u) << "it is the best of all";
  EXPECT_TRUE(ways.mixed);
  std::set<std::string> splits;
  for (const plan::Way& way : ways.found) {
    plan::verify(graph, way.plan);
    EXPECT_TRUE(way.exact);
    EXPECT_GE(way.plan.bytes, plan.bytes);
    EXPECT_TRUE(keeps_to(way.plan, node, way.choices));
    splits.insert(plan::split_text(graph, way.plan, node));
  }
  EXPECT_TRUE(splits.contains("batch/8"));
  EXPECT_TRUE(splits.contains("features/8"));
  EXPECT_TRUE(splits.contains("sum/8"));
}

/// Of the named plans in which the node keeps to one choice none moves less than the best one of that way.
TEST(Alternatives, ways_are_no_dearer_than_named_plans_of_that_way) {
  const tiling::Mesh two{{2}};
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const graph::Graph graph = support::random_graph(seed);
    const plan::Plan plan = plan::make_plan(graph, two, {});
    const graph::NodeId node = plan::main_node(graph, 0);
    for (const plan::Way& way : plan::ways(graph, plan, node, {}).found)
      for (const std::string strategy : {"data", "model", "owt"}) {
        const plan::Plan other = plan::make_plan(graph, two, {.strategy = strategy});
        if (!keeps_to(other, node, way.choices)) continue;
        ++compared;
        EXPECT_LE(way.plan.bytes, other.bytes) << seed << ' ' << strategy;
      }
  }
  EXPECT_GT(compared, 6);
}

TEST(Alternatives, ways_of_a_dear_plan_show_the_better_ones) {
  const graph::Graph graph = test::alexnet(256);
  const plan::Plan data = plan::make_plan(graph, mesh, {.strategy = "data"});
  const graph::NodeId node = plan::main_node(graph, layer_named(graph, "fc6"));
  const plan::Ways ways = plan::ways(graph, data, node, {});
  EXPECT_GT(ways.planned, 0u);
  EXPECT_EQ(ways.found[ways.planned].plan.bytes, data.bytes);
  EXPECT_LT(ways.found[0].plan.bytes, data.bytes);
}

TEST(Alternatives, pins_hold_in_every_way) {
  const graph::Graph graph = test::mlp(8, {16, 16, 4});
  const plan::Options options{.pins = {{"fc2.weight", "replicate,replicate"}}};
  const tiling::Mesh four{{2, 2}};
  const plan::Plan plan = plan::make_plan(graph, four, options);
  const graph::NodeId node = plan::main_node(graph, layer_named(graph, "fc1"));
  for (const plan::Way& way : plan::ways(graph, plan, node, options).found)
    EXPECT_EQ(way.plan.stored[graph::find_tensor(graph, "fc2.weight")], tiling::replicated(four));
}

} // namespace
} // namespace soybean
