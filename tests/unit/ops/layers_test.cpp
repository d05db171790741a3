// Initial values, sizes and work of layers and of known networks.
#include "unit/ops/helpers.hpp"

#include "ops/operator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace soybean;
using namespace soybean::ops;
using graph::Graph;
using graph::Init;
using graph::Phase;
using graph::TensorId;

graph::Initializer conv_init(Scheme scheme, const std::string& of) {
  Graph g{.name = "g"};
  conv2d_layer(g, "c", input_source(g, 1, {6, 9, 9}), {.channels = 8, .kernel = {3, 5}, .groups = 2, .init = scheme});
  return tensor(g, of).init;
}

graph::Initializer dense_init(Scheme scheme, const std::string& of) {
  Graph g{.name = "g"};
  dense_layer(g, "f", input_source(g, 1, {50}), {.units = 8, .init = scheme});
  return tensor(g, of).init;
}

TEST(Initializers, CountFansAsPyTorch) {
  EXPECT_EQ(conv_init(Scheme::standard, "c.weight").kind, Init::uniform);
  EXPECT_DOUBLE_EQ(conv_init(Scheme::standard, "c.weight").scale, 1 / std::sqrt(3 * 15.0));
  EXPECT_DOUBLE_EQ(conv_init(Scheme::standard, "c.bias").scale, 1 / std::sqrt(3 * 15.0));
  EXPECT_EQ(conv_init(Scheme::kaiming_normal, "c.weight").kind, Init::normal);
  EXPECT_DOUBLE_EQ(conv_init(Scheme::kaiming_normal, "c.weight").scale, std::sqrt(2 / (8 * 15.0)));
  EXPECT_DOUBLE_EQ(conv_init(Scheme::kaiming_normal_fan_in, "c.weight").scale, std::sqrt(2 / (3 * 15.0)));
  EXPECT_EQ(conv_init(Scheme::xavier_uniform, "c.weight").kind, Init::uniform);
  EXPECT_DOUBLE_EQ(conv_init(Scheme::xavier_uniform, "c.weight").scale, std::sqrt(6 / (11 * 15.0)));
  EXPECT_DOUBLE_EQ(dense_init(Scheme::standard, "f.weight").scale, 1 / std::sqrt(50.0));
  EXPECT_DOUBLE_EQ(dense_init(Scheme::standard, "f.bias").scale, 1 / std::sqrt(50.0));
  EXPECT_DOUBLE_EQ(dense_init(Scheme::kaiming_normal, "f.weight").scale, 0.5);
  EXPECT_EQ(dense_init(Scheme::normal, "f.weight").kind, Init::normal);
  EXPECT_DOUBLE_EQ(dense_init(Scheme::normal, "f.weight").scale, 0.01);
}

TEST(Initializers, OnlyTheDefaultHasBiasesOtherThanZero) {
  for (Scheme scheme :
       {Scheme::kaiming_normal, Scheme::kaiming_normal_fan_in, Scheme::xavier_uniform, Scheme::normal}) {
    EXPECT_EQ(conv_init(scheme, "c.bias").kind, Init::zeros);
    EXPECT_EQ(dense_init(scheme, "f.bias").kind, Init::zeros);
  }
}

TEST(Initializers, AreParsedByName) {
  EXPECT_EQ(parse_scheme("default", "here"), Scheme::standard);
  EXPECT_EQ(parse_scheme("kaiming_normal", "here"), Scheme::kaiming_normal);
  EXPECT_EQ(parse_scheme("kaiming_normal_fan_in", "here"), Scheme::kaiming_normal_fan_in);
  EXPECT_EQ(parse_scheme("xavier_uniform", "here"), Scheme::xavier_uniform);
  EXPECT_EQ(parse_scheme("normal", "here"), Scheme::normal);
  EXPECT_EQ(error_of([] { parse_scheme("xavier", "model.toml:3"); }),
            "model.toml:3: init, got 'xavier' expected default, kaiming_normal, kaiming_normal_fan_in, xavier_uniform "
            "or normal");
}

TEST(Layers, NodesAndParametersAreNamedAfterTheirLayer) {
  Graph g{.name = "g"};
  activate(g, "relu", conv2d_layer(g, "c", input_source(g, 1, {3, 4, 4}), {.channels = 2, .kernel = {3, 3}}));
  ASSERT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(g.nodes[0].name, "c");
  EXPECT_EQ(g.nodes[1].name, "c.bias_add");
  EXPECT_EQ(g.nodes[2].name, "c.relu");
  for (const graph::Node& n : g.nodes) EXPECT_EQ(n.layer, 0);
  EXPECT_EQ(g.layers[0].op, "conv2d");
  EXPECT_EQ(tensor(g, "c.weight").role, graph::Role::parameter);
  EXPECT_EQ(tensor(g, "c.bias").role, graph::Role::parameter);
}

TensorId conv(Graph& g, const std::string& name, TensorId x, std::int64_t channels, std::int64_t kernel,
              std::int64_t stride, std::int64_t padding) {
  x = conv2d_layer(
      g, name, x,
      {.channels = channels, .kernel = {kernel, kernel}, .stride = {stride, stride}, .padding = {padding, padding}});
  return activate(g, "relu", x);
}

/// torchvision's AlexNet.
Graph alexnet(std::int64_t batch) {
  Graph g{.name = "alexnet"};
  const PoolOptions pool{.kernel = {3, 3}, .stride = Pair{2, 2}};
  TensorId x = conv(g, "conv1", input_source(g, batch, {3, 224, 224}), 64, 11, 4, 2);
  x = pool_layer(g, "pool1", "max_pool", x, pool);
  x = pool_layer(g, "pool2", "max_pool", conv(g, "conv2", x, 192, 5, 1, 2), pool);
  x = conv(g, "conv3", x, 384, 3, 1, 1);
  x = conv(g, "conv4", x, 256, 3, 1, 1);
  x = pool_layer(g, "pool5", "max_pool", conv(g, "conv5", x, 256, 3, 1, 1), pool);
  x = flatten_layer(g, "flat", x);
  x = activate(g, "relu", dense_layer(g, "fc6", x, {.units = 4096}));
  x = activate(g, "relu", dense_layer(g, "fc7", x, {.units = 4096}));
  loss_layer(g, dense_layer(g, "fc8", x, {.units = 1000}));
  return g;
}

/// Multiply-adds per sample of the convolutions and dense layers, from the published layer sizes alone.
constexpr double alexnet_macs = 55.0 * 55 * 64 * 3 * 121 + 27.0 * 27 * 192 * 64 * 25 + 13.0 * 13 * 384 * 192 * 9 +
                                13.0 * 13 * 256 * 384 * 9 + 13.0 * 13 * 256 * 256 * 9 + 9216.0 * 4096 + 4096.0 * 4096 +
                                4096.0 * 1000;

double product_flops(const Graph& g, Phase phase) {
  double sum = 0;
  for (const graph::Node& n : g.nodes)
    if (n.phase == phase && (n.op.starts_with("conv2d") || n.op.starts_with("dense"))) sum += flops(g, n);
  return sum;
}

TEST(Flops, OfAlexNet) {
  Graph g = alexnet(2);
  add_backward_and_update(g, {.momentum = 0.9});
  ops::verify(g);
  EXPECT_DOUBLE_EQ(alexnet_macs, 714'188'480);
  EXPECT_DOUBLE_EQ(product_flops(g, Phase::forward), 2 * 2 * alexnet_macs);
  const double first = 55.0 * 55 * 64 * 3 * 121; // needs no gradient by its input
  EXPECT_DOUBLE_EQ(product_flops(g, Phase::backward), 2 * 2 * (2 * alexnet_macs - first));
  EXPECT_LT(flops(g, Phase::forward), 1.01 * product_flops(g, Phase::forward));
  EXPECT_GT(flops(g, Phase::forward), product_flops(g, Phase::forward));
  EXPECT_DOUBLE_EQ(flops(g, Phase::update), 4.0 * 61'100'840);
}

TEST(Parameters, OfAlexNet) {
  Graph g = alexnet(2);
  EXPECT_EQ(graph::parameter_count(g), 61'100'840);
  add_backward_and_update(g, {.momentum = 0.9});
  EXPECT_EQ(graph::parameter_count(g), 61'100'840);
}

TEST(Parameters, OfVgg16) {
  Graph g{.name = "vgg16"};
  TensorId x = input_source(g, 1, {3, 224, 224});
  int stage = 0;
  for (const auto& [channels, count] : {std::pair{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}}) {
    ++stage;
    for (int i = 0; i < count; ++i) x = conv(g, fmt::format("conv{}_{}", stage, i), x, channels, 3, 1, 1);
    x = pool_layer(g, fmt::format("pool{}", stage), "max_pool", x, {.kernel = {2, 2}});
  }
  x = dense_layer(g, "fc1", flatten_layer(g, "flat", x), {.units = 4096});
  x = dense_layer(g, "fc2", x, {.units = 4096});
  loss_layer(g, dense_layer(g, "fc3", x, {.units = 1000}));
  EXPECT_EQ(graph::parameter_count(g), 138'357'544);
  EXPECT_DOUBLE_EQ(product_flops(g, Phase::forward), 2 * 15'470'264'320.0);
}

TEST(Flops, OfSmallOperators) {
  const Graph g = every_operator();
  const auto of = [&](std::string_view name) { return flops(g, node(g, name)); };
  EXPECT_DOUBLE_EQ(of("conv1.relu"), 4 * 6 * 64);
  EXPECT_DOUBLE_EQ(of("max"), 4 * 6 * 16 * 4); // 2x2 windows
  EXPECT_DOUBLE_EQ(of("conv1.relu.grad"), 4 * 6 * 16 * 4);
  EXPECT_DOUBLE_EQ(of("avg"), 4 * 6 * 16 * 9);
  EXPECT_DOUBLE_EQ(of("up"), 0); // the nearest pixel
  EXPECT_DOUBLE_EQ(of("transposed"), 2 * 4 * 4 * 14 * 12 * 6 * 4);
  EXPECT_DOUBLE_EQ(of("transposed.weight.grad"), 2 * 4 * 4 * 14 * 12 * 6 * 4);
  EXPECT_DOUBLE_EQ(of("gap"), 4 * 6 * 28 * 24);
  EXPECT_DOUBLE_EQ(of("transposed.bias_add.grad"), 4 * 6 * 28 * 24);
  EXPECT_DOUBLE_EQ(of("add"), 4 * 6 * 16);
  EXPECT_DOUBLE_EQ(of("mul"), 4 * 6 * 16);
  EXPECT_DOUBLE_EQ(of("flat"), 0);
  EXPECT_DOUBLE_EQ(of("fc2"), 2 * 4 * 12 * 10);
  EXPECT_DOUBLE_EQ(of("fc2.weight.grad"), 2 * 4 * 12 * 10);
  EXPECT_DOUBLE_EQ(of("fc1.bias_add.grad"), 2 * 4 * 12 * 10);
  EXPECT_DOUBLE_EQ(of("fc2.bias.grad"), 4 * 10);
  EXPECT_DOUBLE_EQ(of("classes"), 5 * 4 * 10);
  EXPECT_DOUBLE_EQ(of("values"), 3 * 4 * 10);
  EXPECT_DOUBLE_EQ(of("bits"), 6 * 4 * 10);
  EXPECT_DOUBLE_EQ(of("loss"), 2 * 4);
  EXPECT_DOUBLE_EQ(of("split.parts"), 4 * 4 * 10);
  EXPECT_DOUBLE_EQ(of("fc2.weight"), 2 * 2 * 120); // lr and momentum
}

} // namespace
