#include "ops/recompute.hpp"

#include "unit/ops/helpers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::ops;
using graph::Graph;
using graph::Node;
using graph::Recompute;
using graph::TensorId;
using Names = std::vector<std::string>;

Graph finish(Graph g, Recompute recompute, std::int64_t microbatches = 1) {
  g.recompute = recompute;
  g.microbatches = microbatches;
  add_backward_and_update(g, {});
  ops::verify(g);
  return g;
}

Names node_names(const Graph& g) {
  Names names;
  for (const Node& n : g.nodes) names.push_back(n.name);
  return names;
}

Names again(const Graph& g) {
  Names names;
  for (const Node& n : g.nodes)
    if (n.name.ends_with(":again")) names.push_back(n.name.substr(0, n.name.size() - 6));
  return names;
}

Names inputs_of(const Graph& g, std::string_view of) {
  Names names;
  for (TensorId t : node(g, of).inputs) names.push_back(g.tensors[t].name);
  return names;
}

/// conv → batch norm → relu, then a dense layer.
Graph normed() {
  Graph g{.name = "normed"};
  TensorId x = input_source(g, 4, {2, 4, 4});
  x = conv2d_layer(g, "conv", x, {.channels = 3, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  x = pointwise_layer(g, "bn.relu", "relu", batch_norm_layer(g, "bn", x, {}));
  x = dense_layer(g, "fc", flatten_layer(g, "flat", x), {.units = 3, .bias = false});
  loss_layer(g, x);
  return g;
}

/// So many dense layers of one size with biases and relus, then one for the classes.
Graph chain(int layers) {
  Graph g{.name = "chain"};
  TensorId x = input_source(g, 6, {8});
  for (int i = 0; i < layers; ++i) {
    const std::string name = fmt::format("d{}", i);
    x = pointwise_layer(g, name + ".relu", "relu", dense_layer(g, name, x, {.units = 8}));
  }
  loss_layer(g, dense_layer(g, "last", x, {.units = 3}));
  return g;
}

/// Residual blocks of two dense layers.
Graph residual(int blocks) {
  Graph g{.name = "residual"};
  TensorId x = input_source(g, 6, {8});
  x = pointwise_layer(g, "first.relu", "relu", dense_layer(g, "first", x, {.units = 8}));
  for (int i = 0; i < blocks; ++i) {
    const std::string name = fmt::format("b{}", i);
    TensorId y = pointwise_layer(g, name + ".0.relu", "relu", dense_layer(g, name + ".0", x, {.units = 8}));
    y = dense_layer(g, name + ".1", y, {.units = 8});
    x = pointwise_layer(g, name + ".relu", "relu", add_layer(g, name, {y, x}));
  }
  loss_layer(g, dense_layer(g, "last", x, {.units = 3}));
  return g;
}

TEST(Recompute, NoneLeavesTheGraphAsItIs) {
  Graph plain = normed();
  add_backward_and_update(plain, {});
  EXPECT_EQ(graph::to_string(finish(normed(), Recompute::none)), graph::to_string(plain));
}

TEST(Recompute, CheapComputesNormAndReluAgainRightBeforeTheirFirstUse) {
  const Graph g = finish(normed(), Recompute::cheap);
  EXPECT_EQ(again(g), (Names{"bn", "bn.relu", "flat"}));
  const Names names = node_names(g);
  const auto at = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  EXPECT_EQ(at("flat:again") + 1, at("fc.weight.grad"));
  EXPECT_EQ(inputs_of(g, "bn:again"), (Names{"conv", "bn.mean", "bn.variance", "bn.weight", "bn.bias"}));
  EXPECT_EQ(inputs_of(g, "fc.weight.grad").back(), "flat:again");
  EXPECT_EQ(inputs_of(g, "bn.grad").back(), "bn.relu:again");
  ASSERT_NE(node(g, "bn:again").twin, graph::none);
  EXPECT_EQ(g.nodes[node(g, "bn:again").twin].name, "bn");
  EXPECT_EQ(node(g, "bn:again").phase, graph::Phase::backward);
  EXPECT_EQ(std::count(names.begin(), names.end(), "bn.mean:again"), 0);
  EXPECT_EQ(g.metrics.size(), 2U);
}

/// What convolution, bias and relu make in one call is kept; bias and convolution alone would be one more.
TEST(Recompute, CheapKeepsTheFirstTensorThatBackwardReads) {
  const Graph g = finish(chain(3), Recompute::cheap);
  EXPECT_EQ(again(g), Names{});
}

TEST(Recompute, CheapChainsAreNotLong) {
  Graph g{.name = "pointwise"};
  TensorId x = dense_layer(g, "fc", input_source(g, 6, {8}), {.units = 8, .bias = false});
  for (const char* name : {"t0", "t1", "t2", "t3", "t4", "t5"}) x = pointwise_layer(g, name, "tanh", x);
  loss_layer(g, dense_layer(g, "last", x, {.units = 3}));
  EXPECT_EQ(again(finish(std::move(g), Recompute::cheap)), (Names{"t4", "t5", "t1", "t2"}));
}

TEST(Recompute, SegmentsKeepWhatAloneCrossesAndTheLastOne) {
  const Graph g = finish(chain(9), Recompute::segments);
  // Four relus for each segment, of which the last is kept; the last segment is not computed again.
  Names expected;
  for (const char* layer : {"d4", "d5", "d6", "d0", "d1", "d2"})
    for (const char* part : {"", ".bias_add", ".relu"}) expected.push_back(std::string(layer) + part);
  EXPECT_EQ(again(g), expected);
  EXPECT_EQ(inputs_of(g, "d4:again"), (Names{"d3.relu", "d4.weight"}));
  EXPECT_EQ(inputs_of(g, "d0:again"), (Names{"input", "d0.weight"}));
}

TEST(Recompute, SegmentsOfResidualNetworksEndBetweenBlocks) {
  const Graph g = finish(residual(6), Recompute::segments);
  ASSERT_FALSE(again(g).empty());
  const auto read_again = [&](const std::string& name) { // by nodes of the second pass, from the first
    const graph::Tensor& t = tensor(g, name);
    return std::any_of(t.consumers.begin(), t.consumers.end(),
                       [&](graph::NodeId n) { return g.nodes[n].name.ends_with(":again"); });
  };
  int kept = 0;
  for (int i = 0; i < 6; ++i) {
    EXPECT_FALSE(read_again(fmt::format("b{}.0.relu", i)));
    kept += read_again(fmt::format("b{}.relu", i)) ? 1 : 0;
  }
  EXPECT_GE(kept, 1);
  EXPECT_LE(kept, 3);
}

TEST(Recompute, MasksAreThoseOfTheForwardPass) {
  Graph g{.name = "dropped"};
  TensorId x = dense_layer(g, "a", input_source(g, 4, {6}), {.units = 6});
  x = dropout_layer(g, "drop", pointwise_layer(g, "tanh", "tanh", x), 0.5, 1);
  loss_layer(g, dense_layer(g, "b", x, {.units = 3}));
  g = finish(std::move(g), Recompute::cheap, 2);
  EXPECT_EQ(again(g), Names{"drop"});
  EXPECT_EQ(node(g, "drop:again").attributes.integer("stream"), node(g, "drop").attributes.integer("stream"));
  EXPECT_EQ(node(g, "drop:again:2").attributes.integer("first_row"), 4);
  EXPECT_EQ(g.nodes[node(g, "drop:again:2").twin].name, "drop:again");
  EXPECT_EQ(inputs_of(g, "b.weight.grad:2").back(), "drop:again:2");
}

} // namespace
