#include "program/fuse.hpp"

#include "base/error.hpp"
#include "models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace soybean::program {
namespace {

/// What the compute instructions do, in order, those of the forward part.
std::vector<std::string> forward(const graph::Graph& g, const Program& p) {
  std::vector<std::string> done;
  for (const Instruction& i : p.instructions)
    if (i.kind == Kind::compute && g.nodes[i.node].phase == graph::Phase::forward) done.push_back(operators(g, i));
  return done;
}

using Names = std::vector<std::string>;

TEST(Fuse, BiasAndReluJoinConvolutionsAndProducts) {
  const graph::Graph g = tiny_cnn();
  for (const Mode mode : {Mode::train, Mode::evaluate}) {
    const plan::Plan plan = data_plan(g, {{2}});
    Program p = lower(g, plan, mode);
    const std::size_t buffers = p.buffers.size();
    fuse(g, p);
    verify(g, plan, p);
    EXPECT_EQ(forward(g, p), (Names{"conv2d+bias+relu", "flatten", "dense+bias", "softmax_cross_entropy"}));
    EXPECT_EQ(p.buffers.size(), buffers - 3); // conv, conv.bias_add, fc
  }
}

TEST(Fuse, IsDoneOnce) {
  const graph::Graph g = tiny_cnn();
  Program p = lower(g, data_plan(g, {{2}}), Mode::train);
  fuse(g, p);
  const std::string once = to_string(g, p);
  fuse(g, p);
  EXPECT_EQ(to_string(g, p), once);
}

TEST(Fuse, WithoutBiasReluAloneJoins) {
  graph::Graph g;
  g.name = "no_bias";
  graph::TensorId x = ops::input_source(g, 4, {6});
  x = ops::activate(g, "relu", ops::dense_layer(g, "fc1", x, {.units = 8, .bias = false}));
  x = ops::activate(g, "tanh", ops::dense_layer(g, "fc2", x, {.units = 8, .bias = false}));
  ops::loss_layer(g, ops::dense_layer(g, "fc3", x, {.units = 4, .bias = false}));
  ops::add_backward_and_update(g, {});
  const plan::Plan plan = data_plan(g, {});
  Program p = lower(g, plan, Mode::train);
  fuse(g, p);
  verify(g, plan, p);
  EXPECT_EQ(forward(g, p), (Names{"dense+relu", "dense", "tanh", "dense", "softmax_cross_entropy"}));
}

TEST(Fuse, ResultsThatOthersReadStay) {
  graph::Graph g;
  g.name = "skip";
  const graph::TensorId x = ops::input_source(g, 4, {6});
  const graph::TensorId a = ops::dense_layer(g, "fc1", x, {.units = 6}); // read by relu and by the sum
  const graph::TensorId b = ops::pointwise_layer(g, "act", "relu", a);
  ops::loss_layer(g, ops::add_layer(g, "sum", {a, b}));
  ops::add_backward_and_update(g, {});
  const plan::Plan plan = data_plan(g, {});
  Program p = lower(g, plan, Mode::train);
  fuse(g, p);
  verify(g, plan, p);
  EXPECT_EQ(forward(g, p), (Names{"dense+bias", "relu", "add", "softmax_cross_entropy"}));
}

TEST(Fuse, SumsThatAreReducedFirstStay) {
  const graph::Graph g = tiny_mlp();
  plan::Plan plan;
  plan.mesh = {{2}};
  for (const graph::Node& n : g.nodes) // fc1 sums over its inputs, the rest splits the batch
    plan.choices.push_back({choice_of(g, n, n.name == "fc1" ? "k" : "batch")});
  complete(g, plan);
  Program p = lower(g, plan, Mode::train);
  fuse(g, p);
  verify(g, plan, p);
  EXPECT_EQ(forward(g, p), (Names{"dense", "bias", "relu", "dense", "softmax_cross_entropy"}));
}

TEST(Fuse, OperandsOfTheEpilogueAreBroughtBefore) {
  const graph::Graph g = tiny_mlp();
  plan::Plan plan = data_plan(g, {{2}});
  for (std::size_t t = 0; t < g.tensors.size(); ++t) // the bias is stored split, and gathered for the batch's rows
    if (g.tensors[t].name.starts_with("fc1.bias") && g.tensors[t].role == graph::Role::parameter)
      plan.stored[t] = {tiling::split(0)};
  for (std::size_t t = 0; t < g.tensors.size(); ++t)
    if (g.tensors[t].previous != graph::none) plan.stored[t] = plan.stored[g.tensors[t].previous];
  plan::evaluate(g, plan);
  Program p = lower(g, plan, Mode::train);
  const auto place = [&](Kind kind) {
    for (std::size_t i = 0; i < p.instructions.size(); ++i)
      if (p.instructions[i].kind == kind) return i;
    throw Bug("no such instruction");
  };
  ASSERT_GT(place(Kind::start), place(Kind::compute));
  fuse(g, p);
  verify(g, plan, p);
  EXPECT_EQ(forward(g, p)[0], "dense+bias+relu");
  EXPECT_LT(place(Kind::wait), place(Kind::compute));
}

} // namespace
} // namespace soybean::program
