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
using graph::Phase;
using graph::Role;
using graph::TensorId;

std::vector<std::string> node_names(const Graph& g, Phase from) {
  std::vector<std::string> names;
  for (const Node& n : g.nodes)
    if (n.phase >= from) names.push_back(n.name);
  return names;
}

std::vector<std::string> input_names(const Graph& g, std::string_view of) {
  std::vector<std::string> names;
  for (TensorId t : node(g, of).inputs) names.push_back(g.tensors[t].name);
  return names;
}

Graph chain() {
  Graph g{.name = "chain"};
  TensorId x = input_source(g, 4, {3, 8, 8});
  x = conv2d_layer(g, "conv1", x, {.channels = 6, .kernel = {3, 3}, .padding = {1, 1}});
  x = activate(g, "relu", x);
  x = pool_layer(g, "pool1", "max_pool", x, {.kernel = {2, 2}});
  x = flatten_layer(g, "flat", x);
  x = dense_layer(g, "fc", x, {.units = 10});
  loss_layer(g, x);
  return g;
}

TEST(Autodiff, ChainIsDifferentiatedInReverseWithUpdatesAsSoonAsPossible) {
  Graph g = chain();
  add_backward_and_update(g, {.momentum = 0.9});
  ops::verify(g);
  EXPECT_EQ(node_names(g, Phase::backward),
            (std::vector<std::string>{"fc.bias_add.grad", "fc.bias.grad", "fc.bias", "flat.grad", "fc.weight.grad",
                                      "fc.weight", "pool1.grad", "conv1.relu.grad", "conv1.bias_add.grad",
                                      "conv1.bias.grad", "conv1.bias", "conv1.weight.grad", "conv1.weight"}));
}

TEST(Autodiff, BiasPassesTheVerySameGradientThrough) {
  Graph g = chain();
  add_backward_and_update(g, {});
  EXPECT_EQ(input_names(g, "flat.grad"), (std::vector<std::string>{"fc.bias_add.grad", "fc.weight"}));
  EXPECT_EQ(input_names(g, "conv1.weight.grad"), (std::vector<std::string>{"conv1.bias_add.grad", "input"}));
}

TEST(Autodiff, InputsAndWhatNoParameterFeedsGetNoGradient) {
  Graph g{.name = "g"};
  TensorId x = input_source(g, 4, {3, 8, 8});
  x = pool_layer(g, "pool", "avg_pool", x, {.kernel = {2, 2}});
  x = flatten_layer(g, "flat", x);
  x = dense_layer(g, "fc", x, {.units = 10, .bias = false});
  loss_layer(g, x);
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(node_names(g, Phase::backward), (std::vector<std::string>{"fc.grad", "fc.weight.grad", "fc.weight"}));
}

TEST(Autodiff, UpdateLinksParameterAndMomentumToTheirNextValues) {
  Graph g = chain();
  add_backward_and_update(g, {.momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  const graph::Tensor& w = tensor(g, "fc.weight");
  EXPECT_EQ(g.tensors[w.next].name, "fc.weight.next");
  const graph::Tensor& v = tensor(g, "fc.weight.momentum");
  EXPECT_EQ(v.role, Role::state);
  EXPECT_EQ(v.shape, w.shape);
  EXPECT_EQ(v.spatial, w.spatial);
  EXPECT_EQ(v.spatial, 16);
  EXPECT_EQ(v.units, (Shape{1, 16}));
  EXPECT_EQ(g.tensors[v.next].name, "fc.weight.momentum.next");
  EXPECT_EQ(g.tensors[tensor(g, "fc.weight.momentum.next").previous].name, "fc.weight.momentum");
  EXPECT_EQ(input_names(g, "fc.weight"),
            (std::vector<std::string>{"fc.weight", "fc.weight.grad", "hyper", "fc.weight.momentum"}));
  const graph::Attributes& a = node(g, "fc.weight").attributes;
  EXPECT_EQ(a.real("momentum"), 0.9);
  EXPECT_EQ(a.real("weight_decay"), 5e-4);
  EXPECT_EQ(a.integer("nesterov"), 1);
}

TEST(Autodiff, WithoutMomentumThereIsNoState) {
  Graph g = chain();
  add_backward_and_update(g, {});
  for (const graph::Tensor& t : g.tensors) EXPECT_NE(t.role, Role::state) << t.name;
  EXPECT_EQ(node(g, "fc.weight").outputs.size(), 1u);
}

TEST(Autodiff, MasksLiveWithTheirForwardNode) {
  Graph g = chain();
  add_backward_and_update(g, {});
  EXPECT_EQ(g.nodes[node(g, "conv1.bias_add.grad").twin].name, "conv1.relu");
  EXPECT_EQ(g.nodes[node(g, "conv1.relu.grad").twin].name, "pool1");
  EXPECT_EQ(node(g, "flat.grad").twin, graph::none);
}

TEST(Autodiff, ResidualJoinAddsTheTermsOfItsInput) {
  Graph g{.name = "residual"};
  TensorId x = input_source(g, 4, {3, 8, 8});
  x = conv2d_layer(g, "a", x, {.channels = 4, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  const TensorId y = conv2d_layer(g, "b", x, {.channels = 4, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  x = add_layer(g, "join", {x, y});
  x = global_avg_pool_layer(g, "gap", x);
  x = flatten_layer(g, "flat", x);
  x = dense_layer(g, "fc", x, {.units = 10, .bias = false});
  loss_layer(g, x);
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(node_names(g, Phase::backward),
            (std::vector<std::string>{"fc.grad", "flat.grad", "fc.weight.grad", "fc.weight", "gap.grad", "join.grad",
                                      "a.grad.2", "b.weight.grad", "b.weight", "a.grad", "a.weight.grad", "a.weight"}));
  EXPECT_EQ(node(g, "a.grad").op, "add");
  EXPECT_EQ(input_names(g, "a.grad"), (std::vector<std::string>{"join.grad", "a.grad.2"}));
  EXPECT_EQ(input_names(g, "b.weight.grad"), (std::vector<std::string>{"join.grad", "a"}));
}

TEST(Autodiff, SumOfATensorWithItselfCountsItTwice) {
  Graph g{.name = "twice"};
  TensorId x = dense_layer(g, "fc", input_source(g, 4, {5}), {.units = 10, .bias = false});
  loss_layer(g, add_layer(g, "sum", {x, x}));
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(input_names(g, "fc.grad"), (std::vector<std::string>{"sum.grad", "sum.grad"}));
}

TEST(Autodiff, ProductUsesTheOtherFactor) {
  Graph g{.name = "product"};
  const TensorId x = input_source(g, 4, {5});
  const TensorId a = dense_layer(g, "a", x, {.units = 10, .bias = false});
  const TensorId b = dense_layer(g, "b", x, {.units = 10, .bias = false});
  loss_layer(g, mul_layer(g, "gate", a, b));
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(input_names(g, "a.grad"), (std::vector<std::string>{"gate.grad", "b"}));
  EXPECT_EQ(input_names(g, "b.grad"), (std::vector<std::string>{"gate.grad", "a"}));
}

TEST(Autodiff, SharedParameterIsUpdatedOnceAfterAllItsReaders) {
  Graph g{.name = "shared"};
  TensorId x = dense_layer(g, "a", input_source(g, 4, {6}), {.units = 6, .bias = false});
  const TensorId weight = graph::find_tensor(g, "a.weight");
  x = append(g, {.name = "again", .op = "dense", .inputs = {x, weight}, .layer = 0}).front();
  loss_layer(g, x);
  add_backward_and_update(g, {});
  ops::verify(g);
  EXPECT_EQ(node_names(g, Phase::backward), (std::vector<std::string>{"again.grad", "a.grad", "a.weight.grad.1",
                                                                      "a.weight.grad.2", "a.weight.grad", "a.weight"}));
  EXPECT_EQ(node(g, "a.weight.grad").op, "add");
}

TEST(Autodiff, AddOfWeightGradientsHasNoBatch) {
  Graph g{.name = "shared"};
  TensorId x = dense_layer(g, "a", input_source(g, 4, {6}), {.units = 6, .bias = false});
  x = append(g, {.name = "again", .op = "dense", .inputs = {x, graph::find_tensor(g, "a.weight")}, .layer = 0}).front();
  loss_layer(g, x);
  add_backward_and_update(g, {});
  const Form f = form(g, node(g, "a.weight.grad"));
  EXPECT_EQ(to_string(f), "d0 d1, d0 d1 -> d0 d1");
  EXPECT_TRUE(std::none_of(f.indices.begin(), f.indices.end(), [](const LoopIndex& i) { return i.batch; }));
  EXPECT_TRUE(f.linear);
}

TEST(Autodiff, RefusesAModelWithoutParameters) {
  Graph g{.name = "none"};
  loss_layer(g, pointwise_layer(g, "act", "relu", input_source(g, 4, {5})));
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {}); }),
            "model: parameters, got none expected at least one. add a dense or conv2d layer");
}

TEST(Autodiff, RefusesALayerThatDoesNotLeadToTheLoss) {
  Graph g{.name = "dead"};
  const TensorId x = dense_layer(g, "a", input_source(g, 4, {5}), {.units = 10, .bias = false});
  dense_layer(g, "side", x, {.units = 3, .bias = false});
  loss_layer(g, x);
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {}); }),
            "layer 'side' (dense): result, got no path to the loss expected one. use it in a later layer or drop this "
            "one");
}

TEST(Autodiff, RefusesImpossibleOptimizers) {
  Graph g = chain();
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {.momentum = -0.5}); }),
            "optimizer: momentum, got -0.5 expected at least 0");
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {.weight_decay = -1}); }),
            "optimizer: weight_decay, got -1 expected at least 0");
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {.nesterov = true}); }),
            "optimizer: nesterov, got momentum 0 expected a positive one. set momentum or drop nesterov");
}

TEST(Autodiff, RefusesToRunTwice) {
  Graph g = chain();
  add_backward_and_update(g, {});
  EXPECT_THROW(add_backward_and_update(g, {}), Bug);
}

} // namespace
