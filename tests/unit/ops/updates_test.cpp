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
using Names = std::vector<std::string>;

/// Two dense layers; with `bias`, both have one.
Graph two_layers(std::int64_t batch = 4, bool bias = false) {
  Graph g{.name = "two"};
  TensorId x = input_source(g, batch, {6});
  x = dense_layer(g, "a", x, {.units = 5, .bias = bias});
  x = dropout_layer(g, "drop", x, 0.5, 1);
  x = dense_layer(g, "b", x, {.units = 3, .bias = bias});
  loss_layer(g, x);
  return g;
}

Names node_names(const Graph& g) {
  Names names;
  for (const Node& n : g.nodes) names.push_back(n.name);
  return names;
}

Names inputs_of(const Graph& g, std::string_view of) {
  Names names;
  for (TensorId t : node(g, of).inputs) names.push_back(g.tensors[t].name);
  return names;
}

Names states(const Graph& g) {
  Names names;
  for (const graph::Tensor& t : g.tensors)
    if (t.role == Role::state && t.producer == graph::none) names.push_back(t.name);
  return names;
}

TEST(Updates, EachOptimizerHasItsStates) {
  const auto of = [](const Optimizer& optimizer) {
    Graph g = two_layers();
    g.layers[0].frozen = true;
    add_backward_and_update(g, optimizer);
    ops::verify(g);
    return states(g);
  };
  EXPECT_EQ(of({}), Names{});
  EXPECT_EQ(of({.momentum = 0.5, .average_decay = 0.9}), (Names{"b.weight.momentum", "b.weight.average"}));
  EXPECT_EQ(of({.name = "adam"}), (Names{"b.weight.exp_avg", "b.weight.exp_avg_sq"}));
  EXPECT_EQ(of({.name = "adamw", .amsgrad = true}),
            (Names{"b.weight.exp_avg", "b.weight.exp_avg_sq", "b.weight.max_exp_avg_sq"}));
  EXPECT_EQ(of({.name = "rmsprop", .momentum = 0.5, .centered = true}),
            (Names{"b.weight.square_avg", "b.weight.grad_avg", "b.weight.momentum"}));
  EXPECT_EQ(of({.name = "lars", .momentum = 0.5}), Names{"b.weight.momentum"});
  EXPECT_EQ(of({.name = "lamb"}), (Names{"b.weight.exp_avg", "b.weight.exp_avg_sq"}));
}

TEST(Updates, FrozenLayersHaveNoGradientNorUpdate) {
  Graph g = two_layers();
  g.layers[0].frozen = true;
  add_backward_and_update(g, {.momentum = 0.9});
  EXPECT_EQ(node_names(g), (Names{"a", "drop", "b", "loss", "b.grad", "b.weight.grad", "b.weight"}));
  EXPECT_EQ(tensor(g, "a.weight").next, graph::none);
}

TEST(Updates, AModelOfFrozenLayersAloneIsRefused) {
  Graph g = two_layers();
  for (graph::Layer& layer : g.layers) layer.frozen = true;
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {}); }),
            "model: layers, got frozen ones alone expected one that is trained. drop a `frozen`");
}

TEST(Updates, LayersHaveTheirOwnRateAndDecay) {
  Graph g = two_layers(4, true);
  g.layers[0].lr_scale = 0.5;
  g.layers[0].weight_decay = 0.25;
  add_backward_and_update(g, {.weight_decay = 0.125, .decay_biases = false});
  EXPECT_EQ(node(g, "a.weight").attributes.real("lr_scale"), 0.5);
  EXPECT_EQ(node(g, "a.weight").attributes.real("weight_decay"), 0.25);
  EXPECT_EQ(node(g, "a.bias").attributes.real("lr_scale"), 0.5);
  EXPECT_EQ(node(g, "a.bias").attributes.real("weight_decay"), 0);
  EXPECT_FALSE(node(g, "b.weight").attributes.has("lr_scale"));
  EXPECT_EQ(node(g, "b.weight").attributes.real("weight_decay"), 0.125);
}

TEST(Updates, ClippingSumsUpBeforeItReducesAndComesBeforeAllUpdates) {
  Graph g = two_layers();
  add_backward_and_update(g, {.clip_norm = 1});
  ops::verify(g);
  EXPECT_EQ(node_names(g), (Names{"a", "drop", "b", "loss", "b.grad", "drop.grad", "b.weight.grad", "a.grad",
                                  "a.weight.grad", "b.weight.grad.squares", "a.weight.grad.squares", "gradient_squares",
                                  "gradient_norm", "b.weight", "a.weight"}));
  EXPECT_EQ(inputs_of(g, "a.weight"), (Names{"a.weight", "a.weight.grad", "hyper", "gradient_norm.factor"}));
  EXPECT_EQ(g.tensors[g.metrics.back()].name, "gradient_norm");
  EXPECT_EQ(tensor(g, "gradient_squares").role, Role::control);
  EXPECT_EQ(tensor(g, "gradient_squares").dtype, DType::f64);
}

TEST(Updates, MomentsReadTheirCorrectionsFromHyper) {
  for (const char* name : {"adam", "adamw", "lamb"}) {
    Graph g = two_layers();
    add_backward_and_update(g, {.name = name});
    EXPECT_EQ(tensor(g, "hyper").shape, (Shape{4})) << name;
  }
}

TEST(Updates, LarsAndLambTakeNormsOfWholeTensorsUnlessExempt) {
  Graph lars = two_layers(4, true);
  add_backward_and_update(lars, {.name = "lars", .decay_biases = false});
  EXPECT_EQ(inputs_of(lars, "a.weight"), (Names{"a.weight", "a.weight.grad", "hyper", "a.weight.norms"}));
  EXPECT_EQ(inputs_of(lars, "a.weight.norms"), (Names{"a.weight", "a.weight.grad"}));
  EXPECT_EQ(inputs_of(lars, "a.bias"), (Names{"a.bias", "a.bias.grad", "hyper"}));
  Graph lamb = two_layers();
  add_backward_and_update(lamb, {.name = "lamb", .clip_norm = 1, .average_decay = 0.5});
  EXPECT_EQ(inputs_of(lamb, "a.weight"),
            (Names{"a.weight", "a.weight.direction", "hyper", "a.weight.average", "a.weight.norms"}));
  EXPECT_EQ(inputs_of(lamb, "a.weight.norms"), (Names{"a.weight", "a.weight.direction"}));
  EXPECT_EQ(inputs_of(lamb, "a.weight.direction"), (Names{"a.weight", "a.weight.grad", "hyper", "a.weight.exp_avg",
                                                          "a.weight.exp_avg_sq", "gradient_norm.factor"}));
}

TEST(Updates, AveragesBelongToTheirWeights) {
  Graph g = two_layers();
  add_backward_and_update(g, {.average_decay = 0.9});
  const graph::Tensor& w = tensor(g, "a.weight");
  ASSERT_NE(w.in_evaluation, graph::none);
  EXPECT_EQ(g.tensors[w.in_evaluation].name, "a.weight.average");
  EXPECT_EQ(g.tensors[g.tensors[w.in_evaluation].next].name, "a.weight.average.next");
}

TEST(Updates, RefuseSettingsThatMakeNoSense) {
  const auto error = [](const Optimizer& optimizer) {
    Graph g = two_layers();
    return error_of([&] { add_backward_and_update(g, optimizer); });
  };
  EXPECT_EQ(error({.name = "adagrad"}),
            "optimizer: name, got 'adagrad' expected sgd, adam, adamw, rmsprop, lars or lamb");
  EXPECT_EQ(error({.beta1 = 1}), "optimizer: beta1, got 1 expected at least 0 and below 1");
  EXPECT_EQ(error({.beta2 = -0.5}), "optimizer: beta2, got -0.5 expected at least 0 and below 1");
  EXPECT_EQ(error({.average_decay = 1}), "optimizer: average_decay, got 1 expected at least 0 and below 1");
  EXPECT_EQ(error({.clip_norm = -1}), "optimizer: clip_norm, got -1 expected at least 0");
}

TEST(Microbatches, PartFollowsPartAndGradientsAreAddedUp) {
  Graph g = two_layers(2);
  g.microbatches = 3;
  add_backward_and_update(g, {.clip_norm = 1});
  ops::verify(g);
  Names second, third;
  for (const Node& n : g.nodes) {
    if (n.name.ends_with(":2") || n.name.ends_with(":sum2")) second.push_back(n.name);
    if (n.name.ends_with(":3") || n.name.ends_with(":sum3")) third.push_back(n.name);
  }
  EXPECT_EQ(second, (Names{"a:2", "drop:2", "b:2", "loss:2", "b.grad:2", "drop.grad:2", "b.weight.grad:2",
                           "b.weight.grad:sum2", "a.grad:2", "a.weight.grad:2", "a.weight.grad:sum2"}));
  EXPECT_EQ(second.size(), third.size());
  EXPECT_EQ(inputs_of(g, "a.weight.grad:sum3"), (Names{"a.weight.grad:sum2", "a.weight.grad:3"}));
  EXPECT_EQ(g.nodes[node(g, "a.weight.grad:sum3").twin].name, "a.weight.grad:sum2");
  EXPECT_EQ(g.nodes[node(g, "a:3").twin].name, "a");
  EXPECT_EQ(inputs_of(g, "a:2"), (Names{"input:2", "a.weight"}));
  EXPECT_EQ(tensor(g, "input:3").first_row, 4);
  EXPECT_EQ(node(g, "drop:3").attributes.integer("first_row"), 4);
  EXPECT_EQ(node(g, "a.grad:2").attributes.integer("first_row"), 2);
  EXPECT_EQ(inputs_of(g, "a.weight"), (Names{"a.weight", "a.weight.grad:sum3", "hyper", "gradient_norm.factor"}));
  Names metrics;
  for (TensorId t : g.metrics) metrics.push_back(g.tensors[t].name);
  EXPECT_EQ(metrics,
            (Names{"loss", "loss.correct", "loss:2", "loss:2.correct", "loss:3", "loss:3.correct", "gradient_norm"}));
}

TEST(Microbatches, UpdatesFollowAsSoonAsTheLastPartsGradientIsThere) {
  Graph g = two_layers(2);
  g.microbatches = 2;
  add_backward_and_update(g, {});
  const Names names = node_names(g);
  const auto at = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  EXPECT_EQ(at("b.weight"), at("b.weight.grad:sum2") + 1);
  EXPECT_LT(at("b.weight"), at("a.weight.grad:2"));
}

TEST(Microbatches, ModelsWithRunningStatisticsAreRefused) {
  Graph g = two_layers(2);
  g.microbatches = 2;
  append_source(g, {.name = "mean", .shape = {3}, .role = Role::state});
  EXPECT_EQ(error_of([&] { add_backward_and_update(g, {}); }),
            "train.microbatches: got 2 for a model with running statistics (mean) expected 1. batch norm by parts of "
            "the batch is not supported yet");
}

} // namespace
