#include "graph/graph.hpp"

#include "base/error.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::graph;

/// y = w·x with a loss, its gradient and the update of w: built by hand, every field as it should be.
Graph small() {
  Graph g{.name = "small"};
  g.layers = {{"fc", "dense"}, {"loss", "softmax_cross_entropy"}};
  g.tensors = {
      {.name = "input", .shape = {2, 12}, .units = {1, 4}, .role = Role::input, .spatial = 4, .consumers = {0, 3}},
      {.name = "fc.weight",
       .shape = {3, 12},
       .units = {1, 4},
       .role = Role::parameter,
       .spatial = 4,
       .init = {Init::uniform, 0.25},
       .consumers = {0, 4},
       .next = 9},
      {.name = "fc", .shape = {2, 3}, .units = {1, 1}, .producer = 0, .consumers = {1, 2}},
      {.name = "labels", .shape = {2}, .units = {1}, .dtype = DType::i32, .role = Role::label, .consumers = {1, 2}},
      {.name = "sample_weights", .shape = {2}, .units = {1}, .role = Role::sample_weight, .consumers = {1, 2}},
      {.name = "loss", .role = Role::metric, .producer = 1},
      {.name = "fc.grad", .shape = {2, 3}, .units = {1, 1}, .role = Role::gradient, .producer = 2, .consumers = {3}},
      {.name = "fc.weight.grad",
       .shape = {3, 12},
       .units = {1, 4},
       .role = Role::gradient,
       .spatial = 4,
       .producer = 3,
       .consumers = {4}},
      {.name = "hyper", .shape = {2}, .units = {1}, .dtype = DType::f64, .role = Role::hyper, .consumers = {4}},
      {.name = "fc.weight.next",
       .shape = {3, 12},
       .units = {1, 4},
       .role = Role::parameter,
       .spatial = 4,
       .producer = 4,
       .previous = 1},
  };
  g.nodes = {
      {.name = "fc", .op = "dense", .inputs = {0, 1}, .outputs = {2}, .layer = 0},
      {.name = "loss", .op = "softmax_cross_entropy", .inputs = {2, 3, 4}, .outputs = {5}, .layer = 1},
      {.name = "fc.grad",
       .op = "softmax_cross_entropy_grad",
       .inputs = {2, 3, 4},
       .outputs = {6},
       .phase = Phase::backward,
       .layer = 1,
       .twin = 1},
      {.name = "fc.weight.grad",
       .op = "dense_grad_weight",
       .inputs = {6, 0},
       .outputs = {7},
       .phase = Phase::backward,
       .layer = 0},
      {.name = "fc.weight",
       .op = "sgd_update",
       .attributes = {{"momentum", 0.0}, {"weight_decay", 0.0005}, {"nesterov", std::int64_t{0}}},
       .inputs = {1, 7, 8},
       .outputs = {9},
       .phase = Phase::update,
       .layer = 0},
  };
  g.metrics = {5};
  g.logits = 2;
  return g;
}

TEST(Text, IsStable) {
  EXPECT_EQ(to_string(small()), R"(graph small fp32
layer fc: dense
layer loss: softmax_cross_entropy
tensor input: input fp32 2x12, units 1x4, spatial 4
tensor fc.weight: parameter fp32 3x12, units 1x4, spatial 4, init uniform 0.25, next fc.weight.next
tensor fc: activation fp32 2x3
tensor labels: label int32 2
tensor sample_weights: sample_weight fp32 2
tensor loss: metric fp32 scalar
tensor fc.grad: gradient fp32 2x3
tensor fc.weight.grad: gradient fp32 3x12, units 1x4, spatial 4
tensor hyper: hyper fp64 2
tensor fc.weight.next: parameter fp32 3x12, units 1x4, spatial 4
node fc: dense(input, fc.weight) -> fc; forward, layer fc
node loss: softmax_cross_entropy(fc, labels, sample_weights) -> loss; forward, layer loss
node fc.grad: softmax_cross_entropy_grad(fc, labels, sample_weights) -> fc.grad; backward, layer loss, twin loss
node fc.weight.grad: dense_grad_weight(fc.grad, input) -> fc.weight.grad; backward, layer fc
node fc.weight: sgd_update(fc.weight, fc.weight.grad, hyper) momentum=0.0 weight_decay=0.0005 nesterov=0 -> fc.weight.next; update, layer fc
metrics loss
logits fc
)");
}

TEST(Text, OfAttributes) {
  EXPECT_EQ(to_string(Attribute{std::int64_t{3}}), "3");
  EXPECT_EQ(to_string(Attribute{3.0}), "3.0");
  EXPECT_EQ(to_string(Attribute{0.1}), "0.1");
  EXPECT_EQ(to_string(Attribute{1e300}), "1e+300");
  EXPECT_EQ(to_string(Attribute{std::string("max")}), "\"max\"");
  EXPECT_EQ(to_string(Attribute{std::vector<std::int64_t>{2, 3}}), "[2, 3]");
}

TEST(Text, OfRolesAndPhases) {
  EXPECT_EQ(to_string(Role::sample_weight), "sample_weight");
  EXPECT_EQ(to_string(Role::state), "state");
  EXPECT_EQ(to_string(Phase::update), "update");
}

TEST(Attributes, AreFoundByNameAndOverwritten) {
  Attributes a{{"kernel", std::vector<std::int64_t>{3, 3}}, {"rate", 0.5}};
  a.set("groups", std::int64_t{2});
  a.set("groups", std::int64_t{4});
  a.set("mode", std::string("max"));
  EXPECT_EQ(a.integers("kernel"), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(a.real("rate"), 0.5);
  EXPECT_EQ(a.integer("groups"), 4);
  EXPECT_EQ(a.text("mode"), "max");
  EXPECT_TRUE(a.has("rate"));
  EXPECT_FALSE(a.has("stride"));
  EXPECT_EQ(a.items().size(), 4u);
  EXPECT_EQ(a.items().back().first, "mode");
}

TEST(Attributes, AbsentOnesAndOtherTypesAreBugs) {
  const Attributes a{{"rate", 0.5}};
  EXPECT_THROW(a.integer("groups"), Bug);
  EXPECT_THROW(a.integer("rate"), Bug);
  EXPECT_THROW(a.text("rate"), Bug);
  EXPECT_THROW(a.integers("rate"), Bug);
}

TEST(Graph, CountsBytesAndParameters) {
  const Graph g = small();
  EXPECT_EQ(bytes(g.tensors[1]), 144);
  EXPECT_EQ(bytes(g.tensors[5]), 4);
  EXPECT_EQ(bytes(g.tensors[8]), 16);
  EXPECT_EQ(parameter_count(g), 36); // not the next value
  EXPECT_EQ(find_tensor(g, "fc.grad"), 6);
  EXPECT_EQ(find_tensor(g, "nobody"), none);
}

TEST(Verify, AcceptsAWellFormedGraph) {
  EXPECT_NO_THROW(verify(small()));
  EXPECT_NO_THROW(verify(Graph{}));
}

struct Violation {
  std::string text; ///< part of the Bug
  std::function<void(Graph&)> commit;
};

TEST(Verify, CatchesEveryViolation) {
  const std::vector<Violation> violations = {
      {"node 'fc' has an input out of range", [](Graph& g) { g.nodes[0].inputs[0] = 10; }},
      {"node 'fc' has an output out of range", [](Graph& g) { g.nodes[0].outputs[0] = -1; }},
      {"node 'fc' has no outputs", [](Graph& g) { g.nodes[0].outputs.clear(); }},
      {"node 'fc' has a layer out of range", [](Graph& g) { g.nodes[0].layer = 2; }},
      {"node 'fc' has a twin out of range", [](Graph& g) { g.nodes[0].twin = 5; }},
      {"tensor 'fc' has a producer out of range", [](Graph& g) { g.tensors[2].producer = 5; }},
      {"tensor 'fc.weight' has a next, previous or evaluated value out of range",
       [](Graph& g) { g.tensors[1].next = 10; }},
      {"a metric is out of range", [](Graph& g) { g.metrics = {10}; }},
      {"the logits are out of range", [](Graph& g) { g.logits = 10; }},
      {"a tensor has no name", [](Graph& g) { g.tensors[2].name = ""; }},
      {"two tensors are named 'input'", [](Graph& g) { g.tensors[2].name = "input"; }},
      {"a node has no name", [](Graph& g) { g.nodes[0].name = ""; }},
      {"two nodes are named 'loss'", [](Graph& g) { g.nodes[0].name = "loss"; }},
      {"node 'fc' uses 'fc' before it is produced", [](Graph& g) { g.nodes[0].inputs[0] = 2; }},
      {"tensor 'fc' is produced twice", [](Graph& g) { g.nodes[1].outputs = {2}; }},
      {"tensor 'fc' has the wrong producer", [](Graph& g) { g.tensors[2].producer = none; }},
      {"tensor 'fc' has the wrong consumers", [](Graph& g) { g.tensors[2].consumers = {1}; }},
      {"tensor 'fc' has the wrong consumers",
       [](Graph& g) {
         g.tensors[2].consumers = {2, 1};
       }},
      {"forward node 'fc.weight' comes after the forward phase", [](Graph& g) { g.nodes[4].phase = Phase::forward; }},
      {"the twin of node 'fc.grad' is not an earlier forward node", [](Graph& g) { g.nodes[2].twin = 3; }},
      {"the twin of node 'fc.weight.grad' is not an earlier forward node", [](Graph& g) { g.nodes[3].twin = 2; }},
      {"tensor 'fc' lacks units", [](Graph& g) { g.tensors[2].units = {1}; }},
      {"tensor 'labels' has an empty dim", [](Graph& g) { g.tensors[3].shape = {0}; }},
      {"tensor 'fc' has a unit that does not fit its dim",
       [](Graph& g) {
         g.tensors[2].units = {1, 4};
       }},
      {"tensor 'fc' has a unit that does not fit its dim",
       [](Graph& g) {
         g.tensors[2].units = {0, 1};
       }},
      {"tensor 'input' has spatial size 5, which does not fit its shape", [](Graph& g) { g.tensors[0].spatial = 5; }},
      {"tensor 'labels' has spatial size 2, which does not fit its shape", [](Graph& g) { g.tensors[3].spatial = 2; }},
      {"tensor 'input' has spatial size 0, which does not fit its shape", [](Graph& g) { g.tensors[0].spatial = 0; }},
      {"tensor 'input' has spatial size 4, which does not fit its shape",
       [](Graph& g) {
         g.tensors[0].shape = {2, 1, 4, 3};
         g.tensors[0].units = {1, 1, 1, 1};
       }},
      {"tensor 'labels' is fp32, not int32", [](Graph& g) { g.tensors[3].dtype = DType::f32; }},
      {"tensor 'hyper' is fp32, not fp64", [](Graph& g) { g.tensors[8].dtype = DType::f32; }},
      {"tensor 'input' is fp32, not fp64", [](Graph& g) { g.precision = DType::f64; }},
      {"tensor 'input' of role activation has no producer", [](Graph& g) { g.tensors[0].role = Role::activation; }},
      {"tensor 'fc' of role gradient is produced by a forward node",
       [](Graph& g) { g.tensors[2].role = Role::gradient; }},
      {"tensor 'fc.grad' of role activation is produced by a backward node",
       [](Graph& g) { g.tensors[6].role = Role::activation; }},
      {"tensor 'fc.weight' and its next value differ in more than name",
       [](Graph& g) { g.tensors[9].role = Role::gradient; }},
      {"tensor 'fc.weight.next' of role parameter is nobody's next value",
       [](Graph& g) {
         g.tensors[1].next = none;
         g.tensors[9].previous = none;
       }},
      {"tensor 'fc.weight' is not the previous value of its next one", [](Graph& g) { g.tensors[9].previous = 0; }},
      {"tensor 'fc.weight.next' is not the next value of its previous one", [](Graph& g) { g.tensors[1].next = none; }},
      {"tensor 'input' can not have a next value",
       [](Graph& g) {
         g.tensors[0].next = 9;
         g.tensors[9].previous = 0;
         g.tensors[1].next = none;
       }},
      {"tensor 'fc.weight' and its next value differ in more than name", [](Graph& g) { g.tensors[9].spatial = 1; }},
      {"metric 'fc' is not a scalar of role metric", [](Graph& g) { g.metrics = {2}; }},
      {"what is only computed in training is no metric", [](Graph& g) { g.only_in_training = {2}; }},
  };
  for (const Violation& violation : violations) {
    Graph g = small();
    violation.commit(g);
    try {
      verify(g);
      ADD_FAILURE() << "not caught: " << violation.text;
    } catch (const Bug& e) {
      EXPECT_NE(std::string(e.what()).find(violation.text), std::string::npos) << e.what() << "\n" << violation.text;
    }
  }
}

TEST(Verify, CatchesAUseAfterTheUpdate) {
  Graph g = small();
  g.nodes.push_back({.name = "late",
                     .op = "dense_grad_input",
                     .inputs = {6, 1},
                     .outputs = {10},
                     .phase = Phase::backward,
                     .layer = 0});
  g.tensors[1].consumers.push_back(5);
  g.tensors[6].consumers.push_back(5);
  g.tensors.push_back({.name = "late", .shape = {2, 12}, .units = {1, 4}, .role = Role::gradient, .producer = 5});
  try {
    verify(g);
    FAIL();
  } catch (const Bug& e) {
    EXPECT_NE(std::string(e.what()).find("tensor 'fc.weight' is used after its update"), std::string::npos);
  }
}

TEST(Verify, CatchesANextValueThatNoUpdateProduces) {
  Graph g = small();
  g.nodes[4].phase = Phase::backward;
  g.tensors[9].role = Role::gradient;
  g.tensors[1].next = none;
  g.tensors[9].previous = none;
  EXPECT_NO_THROW(verify(g));
  g.tensors[1].next = 9;
  g.tensors[9].previous = 1;
  g.tensors[9].role = Role::parameter;
  EXPECT_THROW(verify(g), Bug);
}

} // namespace
