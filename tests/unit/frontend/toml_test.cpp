#include "frontend/toml.hpp"
#include "frontend/training.hpp"

#include "base/error.hpp"
#include "frontend/layers.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using config::Table;
using graph::Graph;

/// `layers` are the lines of the list; the first stands on line 4.
Graph build(const std::string& layers, const std::string& rest = "loss = \"softmax_cross_entropy\"\n",
            const std::string& input = "[2, 6, 6]") {
  const Table root =
      Table::parse(fmt::format("[model]\ninput = {}\nlayers = [\n{}]\n{}", input, layers, rest), "m.toml");
  Graph graph = frontend::build_graph(root.table("model"), 4, DType::f32, 7);
  root.report_unread();
  return graph;
}

template<class... Args>
std::string error_of(Args&&... args) {
  try {
    build(std::forward<Args>(args)...);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "no error";
}

std::string names(const Graph& graph) {
  std::string text;
  for (const graph::Node& node : graph.nodes) text += node.name + " ";
  return text;
}

const graph::Tensor& tensor(const Graph& graph, const std::string& name) {
  return graph.tensors.at(static_cast<std::size_t>(graph::find_tensor(graph, name)));
}

TEST(BuildGraph, GoldenTextOfASmallNetwork) {
  const Graph graph =
      build("{ op = \"conv2d\", name = \"c\", channels = 4, kernel = 3, padding = 1, activation = \"relu\" },\n"
            "{ op = \"max_pool\", kernel = 2 },\n"
            "{ op = \"flatten\" },\n"
            "{ op = \"dense\", units = 3, bias = false, init = \"normal\" },\n");
  EXPECT_EQ(
      to_string(graph),
      "graph m fp32\n"
      "layer c: conv2d\n"
      "layer max_pool_1: max_pool\n"
      "layer flatten_1: flatten\n"
      "layer dense_1: dense\n"
      "layer loss: softmax_cross_entropy\n"
      "tensor input: input fp32 4x2x6x6, spatial 36\n"
      "tensor c.weight: parameter fp32 4x2x3x3, init uniform 0.23570226039551587\n"
      "tensor c: activation fp32 4x4x6x6, spatial 36\n"
      "tensor c.bias: parameter fp32 4, init uniform 0.23570226039551587\n"
      "tensor c.bias_add: activation fp32 4x4x6x6, spatial 36\n"
      "tensor c.relu: activation fp32 4x4x6x6, spatial 36\n"
      "tensor max_pool_1: activation fp32 4x4x3x3, spatial 9\n"
      "tensor flatten_1: activation fp32 4x36, units 1x9, spatial 9\n"
      "tensor dense_1.weight: parameter fp32 3x36, units 1x9, spatial 9, init normal 0.01\n"
      "tensor dense_1: activation fp32 4x3\n"
      "tensor labels: label int32 4\n"
      "tensor sample_weights: sample_weight fp32 4\n"
      "tensor loss: metric fp32 scalar\n"
      "tensor loss.correct: metric fp32 scalar\n"
      "node c: conv2d(input, c.weight) kernel=[3, 3] stride=[1, 1] padding=[1, 1] dilation=[1, 1] groups=1 -> c; "
      "forward, layer c\n"
      "node c.bias_add: bias(c, c.bias) -> c.bias_add; forward, layer c\n"
      "node c.relu: relu(c.bias_add) -> c.relu; forward, layer c\n"
      "node max_pool_1: max_pool(c.relu) kernel=[2, 2] stride=[2, 2] padding=[0, 0] -> max_pool_1; forward, layer "
      "max_pool_1\n"
      "node flatten_1: flatten(max_pool_1) -> flatten_1; forward, layer flatten_1\n"
      "node dense_1: dense(flatten_1, dense_1.weight) -> dense_1; forward, layer dense_1\n"
      "node loss: softmax_cross_entropy(dense_1, labels, sample_weights) -> loss, loss.correct; forward, layer loss\n"
      "metrics loss, loss.correct\n"
      "logits dense_1\n");
}

TEST(BuildGraph, EveryLayerKindWithItsKeys) {
  const Graph graph =
      build("{ op = \"conv2d\", channels = 4, kernel = [3, 1], stride = [1, 2], padding = [1, 0], dilation = 1, "
            "groups = 2, bias = true, activation = \"tanh\", init = \"xavier_uniform\" },\n"
            "{ op = \"relu\" },\n{ op = \"tanh\" },\n{ op = \"sigmoid\" },\n"
            "{ op = \"avg_pool\", kernel = 3, stride = 1, padding = 1 },\n"
            "{ op = \"dropout\", rate = 0.5 },\n"
            "{ op = \"mul\", inputs = [\"relu_1\", \"tanh_1\"], name = \"product\" },\n"
            "{ op = \"add\", inputs = [\"product\", \"dropout_1\", \"relu_1\"], activation = \"sigmoid\" },\n"
            "{ op = \"max_pool\", kernel = 2, stride = [2, 1], padding = 1 },\n"
            "{ op = \"global_avg_pool\" },\n{ op = \"flatten\" },\n"
            "{ op = \"dense\", units = 5, activation = \"relu\", init = \"kaiming_normal\" },\n");
  EXPECT_EQ(names(graph),
            "conv2d_1 conv2d_1.bias_add conv2d_1.tanh relu_1 tanh_1 sigmoid_1 avg_pool_1 dropout_1 product "
            "add_1 add_1.sigmoid max_pool_1 global_avg_pool_1 flatten_1 dense_1 dense_1.bias_add "
            "dense_1.relu loss ");
  EXPECT_EQ(tensor(graph, "conv2d_1").shape, (Shape{4, 4, 6, 3}));
  EXPECT_EQ(tensor(graph, "conv2d_1.weight").shape, (Shape{4, 1, 3, 1}));
  EXPECT_EQ(tensor(graph, "max_pool_1").shape, (Shape{4, 4, 4, 4}));
  const graph::Node& dropout = graph.nodes[7];
  EXPECT_EQ(dropout.attributes.real("rate"), 0.5);
  EXPECT_EQ(dropout.attributes.integer("seed"), 7);
  EXPECT_EQ(tensor(graph, "dense_1.bias").init.kind, graph::Init::zeros);
}

TEST(BuildGraph, RepeatContinuesCountingAndResidualAdds) {
  const Graph graph = build("{ op = \"conv2d\", channels = 2, kernel = 3, padding = 1 },\n"
                            "{ repeat = 2, layers = [\n"
                            "  { op = \"residual\", activation = \"relu\", body = [\n"
                            "    { op = \"conv2d\", channels = 2, kernel = 3, padding = 1, activation = \"relu\" },\n"
                            "    { op = \"conv2d\", channels = 2, kernel = 3, padding = 1 },\n"
                            "  ] },\n"
                            "] },\n"
                            "{ op = \"flatten\" },\n",
                            "bias = false\nloss = \"softmax_cross_entropy\"\n");
  EXPECT_EQ(names(graph), "conv2d_1 conv2d_2 conv2d_2.relu conv2d_3 residual_1 residual_1.relu conv2d_4 conv2d_4.relu "
                          "conv2d_5 residual_2 residual_2.relu flatten_1 loss ");
  const graph::Node& second = graph.nodes[9];
  ASSERT_EQ(second.inputs.size(), 2u);
  EXPECT_EQ(graph.tensors[second.inputs[0]].name, "residual_1.relu");
  EXPECT_EQ(graph.tensors[second.inputs[1]].name, "conv2d_5");
}

TEST(BuildGraph, ShortcutsAndBranchesBeginWithTheInput) {
  const Graph graph =
      build("{ op = \"conv2d\", name = \"a\", channels = 2, kernel = 3, padding = 1 },\n"
            "{ op = \"residual\", shortcut = [{ op = \"conv2d\", name = \"s\", channels = 3, kernel = 1 }], body = [\n"
            "  { op = \"conv2d\", name = \"b\", channels = 3, kernel = 1 }, { op = \"tanh\" }] },\n"
            "{ op = \"add\", branches = [[], [{ op = \"relu\" }, { op = \"sigmoid\" }]] },\n"
            "{ op = \"mul\", input = \"s\", branches = [[{ repeat = 2, layers = [{ op = \"tanh\" }] }], [\n"
            "  { op = \"add\", inputs = [\"add_1\", \"s\"] }]] },\n"
            "{ op = \"flatten\" },\n",
            "bias = false\nloss = \"softmax_cross_entropy\"\n");
  EXPECT_EQ(names(graph), "a s b tanh_1 residual_1 relu_1 sigmoid_1 add_1 tanh_2 tanh_3 add_2 mul_1 flatten_1 loss ");
  const auto operands = [&](std::size_t node) {
    std::string text;
    for (const graph::TensorId t : graph.nodes[node].inputs) text += graph.tensors[t].name + " ";
    return text;
  };
  EXPECT_EQ(operands(1), "a s.weight ");
  EXPECT_EQ(operands(2), "a b.weight ");
  EXPECT_EQ(operands(4), "s tanh_1 ");
  EXPECT_EQ(operands(7), "residual_1 sigmoid_1 ");
  EXPECT_EQ(operands(8), "s ");
  EXPECT_EQ(operands(11), "tanh_3 add_2 ");
}

TEST(BuildGraph, NamedInputsMeanTheResultAfterTheActivation) {
  const Graph graph = build("{ op = \"dense\", name = \"a\", units = 3, activation = \"relu\" },\n"
                            "{ op = \"dense\", name = \"b\", units = 3, input = \"input\" },\n"
                            "{ op = \"add\", inputs = [\"a\", \"b\"] },\n",
                            "loss = \"softmax_cross_entropy\"\n", "[5]");
  const graph::Node& sum = graph.nodes[5];
  EXPECT_EQ(graph.tensors[sum.inputs[0]].name, "a.relu");
  EXPECT_EQ(graph.tensors[sum.inputs[1]].name, "b.bias_add");
}

TEST(BuildGraph, ModelKeysHoldForAllLayers) {
  const std::string layers =
      "{ op = \"dense\", units = 3, bias = true },\n{ op = \"dense\", units = 2, init = \"normal\" },\n";
  const Graph graph = build(
      layers, "name = \"net\"\nbias = false\ninit = \"kaiming_normal_fan_in\"\nloss = \"softmax_cross_entropy\"\n",
      "[8]");
  EXPECT_EQ(graph.name, "net");
  EXPECT_EQ(graph::find_tensor(graph, "dense_1.bias"), graph::none);
  EXPECT_EQ(tensor(graph, "dense_1.weight").init.kind, graph::Init::normal);
  EXPECT_EQ(tensor(graph, "dense_1.weight").init.scale, 0.5);
  EXPECT_EQ(tensor(graph, "dense_2.weight").init.scale, 0.01);
  const Table root = Table::parse(
      "[model]\ninput = [8]\nlayers = [{ op = \"dense\", units = 2 }]\nloss = \"softmax_cross_entropy\"\n", "d.toml");
  EXPECT_EQ(frontend::build_graph(root.table("model"), 1, DType::f64, 1).precision, DType::f64);
}

TEST(BuildGraph, UnnamedLayersStepAsideOfGivenNames) {
  const Graph graph = build("{ op = \"relu\", name = \"relu_2\" },\n{ op = \"relu\" },\n{ op = \"flatten\" },\n");
  EXPECT_EQ(names(graph), "relu_2 relu_3 flatten_1 loss ");
}

TEST(BuildGraph, LayersSayHowTheyAreTrained) {
  const Graph g = build("{ op = \"dense\", units = 4, lr_scale = 0.5, frozen = true },\n"
                        "{ op = \"residual\", lr_scale = 0.5, weight_decay = 0.1, body = [\n"
                        "  { op = \"dense\", units = 4, lr_scale = 0.5, weight_decay = 0 },\n"
                        "  { op = \"dense\", units = 4 } ] },\n"
                        "{ op = \"dense\", units = 2 },\n",
                        "loss = \"softmax_cross_entropy\"\n", "[4]");
  const auto layer = [&](std::string_view name) {
    for (const graph::Layer& l : g.layers)
      if (l.name == name) return l;
    throw Bug("no such layer");
  };
  EXPECT_TRUE(layer("dense_1").frozen);
  EXPECT_EQ(layer("dense_1").lr_scale, 0.5);
  EXPECT_FALSE(layer("dense_1").weight_decay.has_value());
  EXPECT_EQ(layer("dense_2").lr_scale, 0.25);  // its own and the block's
  EXPECT_EQ(layer("dense_2").weight_decay, 0); // its own goes before the block's
  EXPECT_EQ(layer("dense_3").lr_scale, 0.5);
  EXPECT_EQ(layer("dense_3").weight_decay, 0.1);
  EXPECT_FALSE(layer("dense_3").frozen);
  EXPECT_EQ(layer("dense_4").lr_scale, 1);
}

TEST(BuildGraphErrors, HowLayersAreTrained) {
  const auto of_dense = [](const std::string& key) {
    return error_of(fmt::format("{{ op = \"dense\", units = 2, {} }},\n", key), "loss = \"softmax_cross_entropy\"\n",
                    "[6]");
  };
  EXPECT_EQ(of_dense("lr_scale = -1"),
            "m.toml:4: model.layers[0].lr_scale, got -1 (integer) expected a number above 0. "
            "frozen = true leaves the parameters as they are");
  EXPECT_EQ(of_dense("lr_scale = 0"), "m.toml:4: model.layers[0].lr_scale, got 0 (integer) expected a number above 0. "
                                      "frozen = true leaves the parameters as they are");
  EXPECT_EQ(of_dense("weight_decay = -1"),
            "m.toml:4: model.layers[0].weight_decay, got -1 (integer) expected at least 0");
  EXPECT_EQ(of_dense("frozen = 1"), "m.toml:4: model.layers[0].frozen, got 1 (integer) expected true or false");
  EXPECT_EQ(error_of("{ op = \"relu\", frozen = true },\n{ op = \"flatten\" },\n"), // nothing to train
            "m.toml:4: model.layers[0].frozen, got true (boolean) expected no such key. this relu has no parameters to "
            "train");
  EXPECT_EQ(error_of("{ op = \"flatten\" },\n{ op = \"residual\", lr_scale = 2, body = [ { op = \"relu\" } ] },\n"),
            "m.toml:5: model.layers[1].lr_scale, got 2 (integer) expected no such key. this residual has no parameters "
            "to train");
  EXPECT_EQ(error_of("{ op = \"relu\", frosen = true },\n{ op = \"flatten\" },\n"),
            "m.toml:4: unknown key model.layers[0].frosen, got true (boolean) expected a known key. known here: input, "
            "inputs, name, op, repeat");
}

/// The whole step of a dense layer `a` and a second layer on line 5.
std::string error_of_step(const std::string& second, const std::string& train) {
  const Table root = Table::parse(
      fmt::format("[model]\ninput = [6]\nlayers = [\n{{ op = \"dense\", units = 4, name = \"a\" }},\n{},\n]\nloss = "
                  "\"softmax_cross_entropy\"\n[data]\nsource = \"synthetic\"\nbatch = 4\n[train]\nsteps = 1\n{}\n",
                  second, train),
      "m.toml");
  try {
    frontend::build_training_graph(root, config::read_run_config(root));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(BuildTrainingGraph, ErrorsOfTheUpdateNameFileAndLine) {
  EXPECT_EQ(error_of_step("{ op = \"relu\", name = \"a.weight.average\" }", "ema = 0.9"),
            "m.toml:5: tensor 'a.weight.average': name, got 'a.weight.average', which is in use, expected a new one. "
            "rename the layer");
  EXPECT_EQ(error_of_step("{ op = \"relu\", name = \"a.weight.average\" }", ""), "no error");
  EXPECT_EQ(error_of_step("{ op = \"batch_norm\" }", "microbatches = 2").substr(0, 50),
            "m.toml:13: train.microbatches: got 2 for a model w");
  EXPECT_EQ(error_of_step("{ op = \"dense\", units = 2, frozen = true }", "").substr(0, 9), "no error");
}

TEST(BuildTrainingGraph, ShapesOfMicrobatchesAreSaidToBe) {
  const Table root = Table::parse("[model]\ninput = [6]\nlayers = [{ op = \"dense\", units = 4 }]\nloss = "
                                  "\"softmax_cross_entropy\"\n[data]\nsource = "
                                  "\"synthetic\"\nbatch = 4\n[train]\nsteps = 1\nmicrobatches = 2\n",
                                  "m.toml");
  graph::Graph graph = frontend::build_training_graph(root, config::read_run_config(root));
  EXPECT_EQ(frontend::shapes_note(graph),
            "shapes are those of a microbatch, one of the 2 that a batch is worked off in; "
            "bytes those of a step\n");
  graph.microbatches = 1;
  EXPECT_EQ(frontend::shapes_note(graph), "");
  graph.recompute = graph::Recompute::cheap;
  EXPECT_EQ(frontend::shapes_note(graph),
            "what the forward pass computes is computed again where backward needs it (cheap)\n");
}

TEST(BuildTrainingGraph, SavingsAreThoseOfTheConfiguration) {
  const Table root =
      Table::parse("[model]\ninput = [6]\nlayers = [{ op = \"dense\", units = 4, activation = \"tanh\" }, "
                   "{ op = \"dropout\", rate = 0.5 }, { op = \"dense\", units = 4 }]\nloss = "
                   "\"softmax_cross_entropy\"\n[data]\nsource = \"synthetic\"\nbatch = 4\n[train]\nsteps = 1\n",
                   "m.toml");
  const config::RunConfig open = config::read_run_config(root);
  EXPECT_FALSE(frontend::recompute_of(open.train).has_value());
  const graph::Graph plain = frontend::build_training_graph(root, open);
  EXPECT_EQ(plain.microbatches, 1);
  EXPECT_EQ(plain.recompute, graph::Recompute::none);
  const config::RunConfig chosen = frontend::with_savings(open, 2, graph::Recompute::cheap);
  EXPECT_EQ(frontend::recompute_of(chosen.train), graph::Recompute::cheap);
  const graph::Graph graph = frontend::build_training_graph(root, chosen);
  EXPECT_EQ(graph.microbatches, 2);
  EXPECT_EQ(graph.recompute, graph::Recompute::cheap);
  EXPECT_NE(graph::find_tensor(graph, "dropout_1:again:2"), graph::none);
}

TEST(BuildGraphErrors, MissingAndWrongKeys) {
  EXPECT_EQ(error_of("{ op = \"conv2d\", chanels = 3, kernel = 3 },\n"),
            "m.toml:4: unknown key model.layers[0].chanels, got 3 (integer) expected a known key. did you mean "
            "\"channels\"?");
  EXPECT_EQ(error_of("{ op = \"dense\", init = \"normal\" },\n"), // init is known, however like units it is
            "m.toml:4: model.layers[0].units, got nothing expected an integer");
  EXPECT_EQ(
      error_of("{ op = \"dense\", unit = 3, init = \"normal\" },\n"),
      "m.toml:4: unknown key model.layers[0].unit, got 3 (integer) expected a known key. did you mean \"units\"?");
  EXPECT_EQ(error_of("{ op = \"max_pool\", kernal = 2, stride = 2 },\n"),
            "m.toml:4: unknown key model.layers[0].kernal, got 2 (integer) expected a known key. did you mean "
            "\"kernel\"?");
  EXPECT_EQ(
      error_of("{ op = \"relu\" },\n", "los = \"softmax_cross_entropy\"\n"),
      "m.toml:6: unknown key model.los, got \"softmax_cross_entropy\" (string) expected a known key. did you mean "
      "\"loss\"?");
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 0, kernel = 3 },\n"),
            "m.toml:4: model.layers[0].channels, got 0 (integer) expected at least 1");
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 2 },\n"),
            "m.toml:4: model.layers[0].kernel, got nothing expected an integer or a list of two");
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 2, kernel = -3 },\n"),
            "m.toml:4: model.layers[0].kernel, got -3 (integer) expected at least 1");
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 2, kernel = 3, stride = 0 },\n"),
            "m.toml:4: model.layers[0].stride, got 0 (integer) expected at least 1");
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 2, kernel = 3, padding = [0, -1] },\n"),
            "m.toml:4: model.layers[0].padding[1], got -1 (integer) expected at least 0");
  EXPECT_EQ(error_of("{ op = \"dense\", units = \"many\" },\n"),
            "m.toml:4: model.layers[0].units, got \"many\" (string) expected an integer");
  EXPECT_EQ(error_of("{ op = \"dropout\", rate = 1 },\n"),
            "m.toml:4: model.layers[0].rate, got 1 (integer) expected at least 0 and less than 1");
  EXPECT_EQ(error_of("{ op = \"relu\", units = 3 },\n{ op = \"flatten\" },\n"),
            "m.toml:4: unknown key model.layers[0].units, got 3 (integer) expected a known key. known here: input, "
            "inputs, name, op, repeat");
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 2, kernel = 3, activation = \"rleu\" },\n"),
            "m.toml:4: model.layers[0].activation, got \"rleu\" (string) expected one of relu, relu6, leaky_relu, "
            "elu, gelu, silu, hard_swish, tanh, sigmoid. did you mean \"relu\"?");
  EXPECT_EQ(error_of("{ op = \"leaky_relu\", slope = -0.1 },\n"),
            "m.toml:4: model.layers[0].slope, got -0.1 (number) expected a number of at least 0");
  EXPECT_EQ(error_of("{ op = \"elu\", alpha = -1 },\n"),
            "m.toml:4: model.layers[0].alpha, got -1 (integer) expected a number of at least 0");
  EXPECT_EQ(error_of("{ op = \"batch_norm\", eps = 0 },\n"),
            "m.toml:4: model.layers[0].eps, got 0 (integer) expected a number above 0");
  EXPECT_EQ(error_of("{ op = \"batch_norm\", momentum = 2 },\n"),
            "m.toml:4: model.layers[0].momentum, got 2 (integer) expected at least 0 and at most 1");
  EXPECT_EQ(error_of("{ op = \"group_norm\" },\n"),
            "m.toml:4: model.layers[0].groups, got nothing expected an integer");
  EXPECT_EQ(error_of("{ op = \"layer_norm\", over = \"chanels\" },\n"),
            "m.toml:4: model.layers[0].over, got \"chanels\" (string) expected one of sample, channels. did you mean "
            "\"channels\"?");
  EXPECT_EQ(error_of("{ op = \"lrn\", size = 5, k = -1 },\n"),
            "m.toml:4: model.layers[0].k, got -1 (integer) expected a number of at least 0");
  EXPECT_EQ(error_of("{ op = \"clamp\" },\n"),
            "m.toml:4: model.layers[0].op, got \"clamp\" (string) expected a min, a max or both beside it");
  EXPECT_EQ(error_of("{ op = \"clamp\", min = 2, max = 1 },\n"),
            "m.toml:4: model.layers[0].min, got 2 (integer) expected at most max");
  EXPECT_EQ(error_of("{ op = \"scale\" },\n"), "m.toml:4: model.layers[0].factor, got nothing expected a number");
  EXPECT_EQ(error_of("{ op = \"mean\", dims = [0] },\n"),
            "m.toml:4: model.layers[0].dims[0], got 0 (integer) expected at least 1");
  EXPECT_EQ(error_of("{ op = \"gelu\", approximate = \"tan\" },\n"),
            "m.toml:4: model.layers[0].approximate, got \"tan\" (string) expected one of none, tanh. did you mean "
            "\"tanh\"?");
  EXPECT_EQ(
      error_of("{ op = \"dense\", units = 2, activation = \"softmax\" },\n"),
      "m.toml:4: model.layers[0].activation, got \"softmax\" (string) expected one of relu, relu6, leaky_relu, elu, "
      "gelu, silu, hard_swish, tanh, sigmoid. \"softmax\" is not supported yet");
  EXPECT_EQ(error_of("{ op = \"dense\", units = 2, init = \"kaimingnormal\" },\n"),
            "m.toml:4: model.layers[0].init, got \"kaimingnormal\" (string) expected one of default, kaiming_normal, "
            "kaiming_normal_fan_in, xavier_uniform, normal. did you mean \"kaiming_normal\"?");
}

TEST(BuildGraph, LayersThatJoinReorderAndResize) {
  const Graph graph =
      build("{ op = \"conv2d\", name = \"c\", channels = 4, kernel = [4, 3], padding = \"same\" },\n"
            "{ op = \"conv2d\", name = \"even\", channels = 4, kernel = 3, padding = [1, 1] },\n"
            "{ op = \"conv2d\", name = \"valid\", channels = 4, kernel = 1, padding = \"valid\" },\n"
            "{ op = \"pad\", name = \"p\", padding = [1, 0, 2, 0] },\n"
            "{ op = \"upsample\", name = \"u\", scale_factor = [1, 2] },\n"
            "{ op = \"conv_transpose2d\", name = \"t\", channels = 6, kernel = 2, stride = 2, groups = 2, "
            "output_padding = [0, 1], activation = \"relu\" },\n"
            "{ op = \"permute\", name = \"q\", dims = [0, 3, 1, 2] },\n"
            "{ op = \"transpose\", name = \"r\", dim0 = 3, dim1 = 1 },\n"
            "{ op = \"reshape\", name = \"s\", shape = [-1, 25, 6] },\n"
            "{ op = \"max_pool\", name = \"m\", kernel = 3, stride = 2, padding = [0, 1, 1, 0], ceil_mode = true, "
            "dilation = 2 },\n"
            "{ op = \"avg_pool\", name = \"a\", kernel = 2, count_include_pad = false },\n"
            "{ op = \"flatten\" },\n{ op = \"slice\", begin = 36, end = 72 },\n");
  EXPECT_EQ(names(graph),
            "c.pad c c.bias_add even even.bias_add valid valid.bias_add p u t t.bias_add t.relu q r s m a flatten_1 "
            "slice_1 loss ");
  EXPECT_EQ(tensor(graph, "c.pad").shape, (Shape{4, 2, 7, 6}));
  EXPECT_EQ(tensor(graph, "c").shape, (Shape{4, 4, 6, 6}));
  EXPECT_EQ(tensor(graph, "u").shape, (Shape{4, 4, 9, 12}));
  EXPECT_EQ(tensor(graph, "t").shape, (Shape{4, 6, 18, 25}));
  EXPECT_EQ(tensor(graph, "t.weight").shape, (Shape{4, 3, 2, 2}));
  EXPECT_EQ(tensor(graph, "q").shape, (Shape{4, 25, 6, 18}));
  EXPECT_EQ(tensor(graph, "r").shape, (Shape{4, 18, 6, 25}));
  EXPECT_EQ(tensor(graph, "s").shape, (Shape{4, 18, 25, 6}));
  EXPECT_EQ(tensor(graph, "m").shape, (Shape{4, 18, 12, 2}));
  EXPECT_EQ(tensor(graph, "a").shape, (Shape{4, 18, 6, 1}));
  EXPECT_EQ(tensor(graph, "slice_1").shape, (Shape{4, 36}));
}

TEST(BuildGraph, BranchesAreJoinedAlongChannels) {
  const Graph graph = build("{ repeat = 2, layers = [{ op = \"concat\", branches = [[{ op = \"identity\" }], [\n"
                            "  { op = \"conv2d\", channels = 3, kernel = 1, bias = false }, { op = \"relu\" }]] }] },\n"
                            "{ op = \"concat\", inputs = [\"concat_1\", \"concat_2\"], activation = \"tanh\" },\n"
                            "{ op = \"flatten\" },\n");
  EXPECT_EQ(names(graph), "conv2d_1 relu_1 concat_1 conv2d_2 relu_2 concat_2 concat_3 concat_3.tanh flatten_1 loss ");
  EXPECT_EQ(tensor(graph, "concat_1").shape, (Shape{4, 5, 6, 6}));
  EXPECT_EQ(tensor(graph, "concat_2").shape, (Shape{4, 8, 6, 6}));
  EXPECT_EQ(tensor(graph, "concat_3").shape, (Shape{4, 13, 6, 6}));
}

TEST(BuildGraphErrors, KeysOfJoiningAndReorderingLayers) {
  const auto key = [](const std::string& layer) { return error_of(layer + ",\n"); };
  EXPECT_EQ(key("{ op = \"conv2d\", channels = 2, kernel = 3, padding = [1, 2, 3] }"),
            "m.toml:4: model.layers[0].padding, got [1, 2, 3] (array) expected an integer or a list of two or four");
  EXPECT_EQ(key("{ op = \"conv2d\", channels = 2, kernel = 3, padding = \"some\" }"),
            "m.toml:4: model.layers[0].padding, got \"some\" (string) expected one of same, valid. did you mean "
            "\"same\"?");
  EXPECT_EQ(key("{ op = \"conv2d\", channels = 2, kernel = 3, stride = 2, padding = \"same\" }"),
            "m.toml:4: model.layers[0].padding, got \"same\" (string) expected sizes. \"same\" is for a stride of 1");
  EXPECT_EQ(key("{ op = \"avg_pool\", kernel = 3, padding = [-1, 0] }"),
            "m.toml:4: model.layers[0].padding[0], got -1 (integer) expected at least 0");
  EXPECT_EQ(key("{ op = \"avg_pool\", kernel = 3, dilation = 2 },\n{ op = \"flatten\" }"),
            "m.toml:4: unknown key model.layers[0].dilation, got 2 (integer) expected a known key. known here: "
            "ceil_mode, count_include_pad, input, inputs, kernel, name, op, padding, repeat, stride");
  EXPECT_EQ(key("{ op = \"slice\", begin = 2, end = 2 }"),
            "m.toml:4: model.layers[0].end, got 2 (integer) expected more than begin. begin is 2");
  for (const char* shape : {"[2, 3]", "[-1, -1, 3]", "[0]", "[]"})
    EXPECT_EQ(key(fmt::format("{{ op = \"reshape\", shape = {} }}", shape)),
              fmt::format("m.toml:4: model.layers[0].shape, got {} (array) expected [features] or [channels, height, "
                          "width], one of them -1 at most",
                          shape));
  for (const char* dims : {"[1, 0, 2, 3]", "[0, 1, 2]", "[0, 1, 1, 3]"})
    EXPECT_EQ(key(fmt::format("{{ op = \"permute\", dims = {} }}", dims)),
              fmt::format("m.toml:4: model.layers[0].dims, got {} (array) expected 0 (the batch), then 1, 2 and 3 "
                          "(channels, height, width) in any order",
                          dims));
  EXPECT_EQ(key("{ op = \"transpose\", dim0 = 2, dim1 = 2 }"),
            "m.toml:4: model.layers[0].dim1, got 2 (integer) expected another dim than dim0");
  EXPECT_EQ(key("{ op = \"upsample\", size = 3, scale_factor = 2 }"),
            "m.toml:4: model.layers[0].size, got 3 (integer) expected either size or scale_factor. remove one of them");
  EXPECT_EQ(key("{ op = \"upsample\", scale_factor = 2, align_corners = true }"),
            "m.toml:4: model.layers[0].align_corners, got true (boolean) expected it with mode = \"bilinear\" alone. "
            "the nearest pixel has no corners to align");
  EXPECT_EQ(key("{ op = \"concat\" }"),
            "m.toml:4: layer 'concat_1' (concat), got 1 input expected at least 2. name them: inputs = [\"a\", \"b\"]");
}

const char* const two_heads = "{ op = \"flatten\", name = \"f\" },\n"
                              "{ op = \"dense\", name = \"aux\", units = 3, bias = false },\n"
                              "{ op = \"dense\", name = \"y\", units = 3, input = \"f\", bias = false },\n";

TEST(BuildGraph, TheFirstOfSeveralLossesIsMain) {
  const Graph graph =
      build(two_heads, "top_k = 2\nlosses = [\n"
                       "{ op = \"softmax_cross_entropy\", label_smoothing = 0.1 },\n"
                       "{ op = \"binary_cross_entropy\", input = \"aux\", weight = 0.5, name = \"bits\" },\n"
                       "]\n");
  EXPECT_EQ(names(graph), "f aux y loss_1 bits loss ");
  const auto text_of = [&](const std::vector<graph::TensorId>& tensors) {
    std::string text;
    for (graph::TensorId t : tensors) text += graph.tensors[t].name + " ";
    return text;
  };
  EXPECT_EQ(text_of(graph.metrics), "loss loss_1 loss_1.correct loss_1.top2 bits bits.correct ");
  EXPECT_EQ(text_of(graph.only_in_training), "loss bits bits.correct ");
  EXPECT_EQ(graph.tensors[graph.logits].name, "y");
  EXPECT_EQ(text_of(graph.nodes[5].inputs), "loss_1 bits ");
  EXPECT_EQ(graph.nodes[5].attributes.real("factor_0"), 1);
  EXPECT_EQ(graph.nodes[5].attributes.real("factor_1"), 0.5);
  EXPECT_EQ(graph.nodes[4].attributes.real("factor"), 0.5);
  EXPECT_EQ(graph.nodes[3].attributes.real("label_smoothing"), 0.1);
  const std::vector<char> active = graph::active_nodes(graph, false);
  EXPECT_EQ(active, (std::vector<char>{1, 0, 1, 1, 0, 0})); // the auxiliary head is left out of validation
}

TEST(BuildGraph, ALossMayHaveKeys) {
  const Graph smooth =
      build("{ op = \"flatten\" },\n", "loss = { op = \"softmax_cross_entropy\", label_smoothing = 0.2 }\n");
  EXPECT_EQ(smooth.nodes.back().attributes.real("label_smoothing"), 0.2);
  const Graph decoder = build("{ op = \"flatten\" },\n{ op = \"dense\", units = 72 },\n",
                              "loss = { op = \"mse\", target = \"input\" }\n");
  EXPECT_EQ(names(decoder), "flatten_1 dense_1 dense_1.bias_add loss.image loss ");
  EXPECT_EQ(decoder.metrics.size(), 1U);
  EXPECT_EQ(graph::find_tensor(decoder, "labels"), graph::none);
  const Graph regression =
      build("{ op = \"max_pool\", kernel = 2 },\n", "loss = { op = \"mse\", target = \"targets\" }\n");
  const graph::Tensor& targets = regression.tensors[graph::find_tensor(regression, "targets")];
  EXPECT_EQ(targets.shape, (Shape{4, 2, 3, 3}));
  EXPECT_EQ(targets.spatial, 9);
  EXPECT_EQ(regression.metrics.size(), 1U);
}

TEST(BuildGraphErrors, Losses) {
  const auto loss = [](const std::string& rest) { return error_of(two_heads, rest + "\n"); };
  EXPECT_EQ(
      loss("loss = \"mse\"\nlosses = [{ op = \"mse\" }]"),
      "m.toml:9: model.losses, got [{ op = \"mse\" }] (array) expected either loss or losses. remove one of them");
  EXPECT_EQ(loss("losses = []"), "m.toml:8: model.losses, got [] (array) expected at least one loss");
  EXPECT_EQ(loss("losses = [{ op = \"mse\", input = \"auxx\" }]"),
            "m.toml:8: model.losses[0].input, got \"auxx\" (string) expected names of earlier layers. there is no "
            "'auxx' before this layer. did you mean 'aux'?");
  EXPECT_EQ(loss("losses = [{ op = \"mse\", weight = 0 }]"),
            "m.toml:8: model.losses[0].weight, got 0 (integer) expected more than 0. leave out a loss that does not "
            "count");
  EXPECT_EQ(loss("losses = [{ op = \"mse\", name = \"aux\" }]"),
            "m.toml:8: model.losses[0].name, got \"aux\" (string) expected a name no other layer has. layers inside a "
            "repeat are best left unnamed");
  EXPECT_EQ(loss("losses = [{ op = \"softmax_cross_entropy\", label_smoothing = 1.5 }]"),
            "m.toml:8: model.losses[0].label_smoothing, got 1.5 (number) expected between 0 and 1");
  EXPECT_EQ(loss("losses = [{ op = \"mse\", target = \"target\" }]"),
            "m.toml:8: model.losses[0].target, got \"target\" (string) expected one of labels, input, targets. did you "
            "mean \"targets\"?");
  EXPECT_EQ(
      loss("losses = [{ op = \"mse\", target = \"targets\" }, { op = \"mse\", input = \"f\", target = "
           "\"targets\" }]"),
      "m.toml:8: layer 'loss_2' (mse): target, got targets for shape 4x72 expected 4x3, that of another loss with "
      "targets. samples have targets of one shape");
  EXPECT_EQ(loss("losses = [{ op = \"softmax_cross_entropy\" }]"),
            "m.toml:5: layer 'aux', got no layer that uses it expected one. name it in the inputs of a later layer, or "
            "remove it");
  EXPECT_EQ(loss("top_k = 2\nlosses = [{ op = \"mse\" }, { op = \"mse\", input = \"aux\" }]"),
            "m.toml:8: model.top_k, got 2 (integer) expected a loss of classes with it. use loss = "
            "\"softmax_cross_entropy\"");
  EXPECT_EQ(loss("top_k = 2\nlosses = [{ op = \"mse\" }, { op = \"softmax_cross_entropy\", input = \"aux\" }]"),
            "m.toml:8: model.top_k, got 2 (integer) expected the main loss to be one of classes. that is the first of "
            "the list");
  EXPECT_EQ(loss("top_k = 1\nlosses = [{ op = \"mse\" }]"),
            "m.toml:8: model.top_k, got 1 (integer) expected at least 2");
  EXPECT_EQ(error_of("{ op = \"flatten\" },\n{ op = \"dense\", units = 3 },\n",
                     "top_k = 4\nloss = \"softmax_cross_entropy\"\n"),
            "m.toml:8: layer 'loss' (softmax_cross_entropy): top_k, got 4 expected between 2 and 3, the number of "
            "classes");
  EXPECT_EQ(error_of("{ op = \"relu\" },\n", "loss = \"mse\"\n"),
            "m.toml:6: layer 'loss' (mse): target, got labels for images (4x2x6x6) expected features. put a flatten or "
            "dense layer before the loss");
  EXPECT_EQ(error_of("{ op = \"max_pool\", kernel = 2 },\n", "loss = { op = \"mse\", target = \"input\" }\n"),
            "m.toml:6: layer 'loss' (mse): target, got shape 4x2x6x6 expected the input's 4x2x3x3");
  EXPECT_EQ(error_of("{ op = \"flatten\" },\n", "loss = { op = \"mse\", label_smoothing = 0.1 }\n"),
            "m.toml:6: unknown key model.loss.label_smoothing, got 0.1 (number) expected a known key. known here: op, "
            "target");
}

TEST(BuildGraphErrors, Operators) {
  EXPECT_EQ(error_of("{ op = \"conv2\", channels = 3 },\n"),
            "m.toml:4: model.layers[0].op, got \"conv2\" (string) expected a kind of layer. did you mean \"conv2d\"?");
  std::vector<std::string> kinds = {"residual"};
  for (const frontend::LayerKind& kind : frontend::layer_kinds()) kinds.emplace_back(kind.op);
  std::sort(kinds.begin(), kinds.end());
  EXPECT_EQ(error_of("{ op = \"xyzzyxyzzy\" },\n"),
            fmt::format("m.toml:4: model.layers[0].op, got \"xyzzyxyzzy\" (string) expected a kind of layer. known "
                        "here: {}",
                        fmt::join(kinds, ", ")));
  EXPECT_EQ(error_of("{ name = \"x\" },\n"), "m.toml:4: model.layers[0].op, got nothing expected a string");
  EXPECT_FALSE(frontend::later_layers().empty());
  for (const std::string& op : frontend::later_layers())
    EXPECT_EQ(
        error_of(fmt::format("{{ op = \"{}\" }},\n", op)),
        fmt::format("m.toml:4: model.layers[0].op, got \"{0}\" (string) expected a layer that is built. \"{0}\" is not "
                    "supported yet",
                    op));
}

TEST(BuildGraphErrors, ShapesNameLineAndLayer) {
  const std::string kernel = error_of("{ op = \"conv2d\", name = \"big\", channels = 2, kernel = 9 },\n");
  EXPECT_EQ(
      kernel.rfind("m.toml:4: layer 'big' (conv2d): kernel, got 9x9 on a padded 6x6 image expected at most 6x6", 0), 0u)
      << kernel;
  EXPECT_EQ(error_of("{ op = \"relu\" },\n{ op = \"dense\", units = 3 },\n")
                .rfind("m.toml:5: layer 'dense_1' (dense): input, got 4 dims (4x2x6x6) expected 2", 0),
            0u);
  EXPECT_EQ(error_of("{ op = \"conv2d\", channels = 3, kernel = 1, groups = 2 },\n")
                .rfind("m.toml:4: layer 'conv2d_1' (conv2d): groups, got 2 with 3 channels expected a divisor", 0),
            0u);
  const std::string sum =
      error_of("{ op = \"conv2d\", channels = 3, kernel = 1 },\n{ op = \"add\", inputs = [\"input\", "
               "\"conv2d_1\"] },\n{ op = \"flatten\" },\n");
  EXPECT_EQ(sum.rfind("m.toml:5: layer 'add_1' (add): ", 0), 0u) << sum;
  const std::string block =
      error_of("{ op = \"residual\", body = [{ op = \"conv2d\", channels = 3, kernel = 1 }] },\n");
  EXPECT_EQ(block.rfind("m.toml:4: layer 'residual_1' (add): ", 0), 0u) << block;
  const std::string logits = error_of("{ op = \"relu\" },\n");
  EXPECT_EQ(logits.rfind("m.toml:6: layer 'loss' (softmax_cross_entropy): input, got 4 dims (4x2x6x6) expected 2", 0),
            0u)
      << logits;
  const std::string huge = error_of("{ op = \"conv2d\", channels = 2147483647, kernel = 2147483647 },\n");
  EXPECT_EQ(huge.rfind("m.toml:4: layer 'conv2d_1' (conv2d): ", 0), 0u) << huge;
}

TEST(BuildGraphErrors, Names) {
  EXPECT_EQ(
      error_of("{ op = \"relu\", name = \"a\" },\n{ op = \"relu\", name = \"a\" },\n"),
      "m.toml:5: model.layers[1].name, got \"a\" (string) expected a name no other layer has. layers inside a repeat "
      "are best left unnamed");
  EXPECT_EQ(error_of("{ op = \"relu\", name = \"input\" },\n"),
            "m.toml:4: model.layers[0].name, got \"input\" (string) expected another name. 'input' is reserved");
  EXPECT_EQ(error_of("{ op = \"relu\", name = \"a b\" },\n"),
            "m.toml:4: model.layers[0].name, got \"a b\" (string) expected letters, digits, '_', '-' and '.'");
}

TEST(BuildGraphErrors, Inputs) {
  EXPECT_EQ(error_of("{ op = \"relu\", name = \"conv8\" },\n{ op = \"relu\", input = \"conv9\" },\n"),
            "m.toml:5: model.layers[1].input, got \"conv9\" (string) expected names of earlier layers. there is no "
            "'conv9' before this layer. did you mean 'conv8'?");
  EXPECT_EQ(
      error_of("{ op = \"relu\", inputs = [\"zzzzzzzz\"] },\n"),
      "m.toml:4: model.layers[0].inputs, got [\"zzzzzzzz\"] (array) expected names of earlier layers. there is no "
      "'zzzzzzzz' before this layer");
  EXPECT_EQ(
      error_of("{ op = \"relu\", input = \"input\", inputs = [\"input\"] },\n"),
      "m.toml:4: model.layers[0].input, got \"input\" (string) expected either input or inputs. remove one of them");
  EXPECT_EQ(error_of("{ op = \"add\" },\n"),
            "m.toml:4: layer 'add_1' (add), got 1 input expected at least 2. name them: "
            "inputs = [\"a\", \"b\"]");
  EXPECT_EQ(error_of("{ op = \"mul\", inputs = [\"input\", \"input\", \"input\"] },\n"),
            "m.toml:4: layer 'mul_1' (mul), got 3 inputs expected 2. name them: inputs = [\"a\", \"b\"]");
  EXPECT_EQ(error_of("{ op = \"residual\", inputs = [\"input\", \"input\"], body = [{ op = \"relu\" }] },\n"),
            "m.toml:4: layer 'residual_1' (residual), got 2 inputs expected 1");
  EXPECT_EQ(
      error_of("{ op = \"relu\", name = \"lost\" },\n{ op = \"flatten\", input = \"input\" },\n"),
      "m.toml:4: layer 'lost', got no layer that uses it expected one. name it in the inputs of a later layer, or "
      "remove it");
}

TEST(BuildGraphErrors, Branches) {
  EXPECT_EQ(error_of("{ op = \"add\", inputs = [\"input\", \"input\"], branches = [[], []] },\n"),
            "m.toml:4: model.layers[0].inputs, got [\"input\", \"input\"] (array) expected either inputs or branches. "
            "remove one of them");
  EXPECT_EQ(error_of("{ op = \"add\", branches = [[]] },\n"),
            "m.toml:4: layer 'add_1' (add), got 1 input expected at least 2. name them: inputs = [\"a\", \"b\"]");
  EXPECT_EQ(error_of("{ op = \"add\", branches = [{ op = \"relu\" }] },\n"),
            "m.toml:4: model.layers[0].branches[0], got { op = \"relu\" } (table) expected a list of tables");
  EXPECT_EQ(error_of("{ op = \"add\", branches = [[], [3]] },\n"),
            "m.toml:4: model.layers[0].branches[1][0], got 3 (integer) expected a table");
  EXPECT_EQ(error_of("{ op = \"add\", branches = 3 },\n"),
            "m.toml:4: model.layers[0].branches, got 3 (integer) expected a list of lists of tables");
  EXPECT_EQ(error_of("{ op = \"residual\", shortcut = [], body = [{ op = \"relu\" }] },\n"),
            "m.toml:4: model.layers[0].shortcut, got [] (array) expected at least one layer");
}

TEST(BuildGraphErrors, RepeatAndModelKeys) {
  EXPECT_EQ(error_of("{ repeat = 0, layers = [{ op = \"relu\" }] },\n"),
            "m.toml:4: model.layers[0].repeat, got 0 (integer) expected at least 1");
  EXPECT_EQ(error_of("{ repeat = 2, op = \"relu\" },\n"),
            "m.toml:4: model.layers[0].repeat, got 2 (integer) expected no op beside it. put the layer into `layers`");
  EXPECT_EQ(error_of("{ repeat = 2, layers = [] },\n"),
            "m.toml:4: model.layers[0].layers, got [] (array) expected at least one layer");
  EXPECT_EQ(error_of("{ op = \"residual\", body = [] },\n"),
            "m.toml:4: model.layers[0].body, got [] (array) expected at least one layer");
  EXPECT_EQ(error_of("{ repeat = 10000, layers = [{ repeat = 10000, layers = [{ op = \"relu\" }] }] },\n"),
            "m.toml:4: layers, got more than 10000 expected fewer");
  EXPECT_EQ(error_of("{ op = \"relu\" },\n", ""), "m.toml:1: model.loss, got nothing expected one of "
                                                  "softmax_cross_entropy, mse, binary_cross_entropy");
  EXPECT_EQ(error_of("{ op = \"relu\" },\n", "loss = \"msee\"\n"),
            "m.toml:6: model.loss, got \"msee\" (string) expected one of softmax_cross_entropy, mse, "
            "binary_cross_entropy. did you mean \"mse\"?");
  EXPECT_EQ(error_of("{ op = \"relu\" },\n", "loss = \"softmax_cross_entropy\"\n", "[2, 6]"),
            "m.toml:2: model.input, got [2, 6] (array) expected [features] or [channels, height, width]");
  EXPECT_EQ(error_of("{ op = \"relu\" },\n", "loss = \"softmax_cross_entropy\"\n", "[0]"),
            "m.toml:2: model.input[0], got 0 (integer) expected at least 1");
}

} // namespace
