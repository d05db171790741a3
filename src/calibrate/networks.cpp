#include "calibrate/networks.hpp"

#include "ops/autodiff.hpp"
#include "ops/layers.hpp"
#include "ops/norm_layers.hpp"

#include <utility>

namespace soybean::calibrate {
namespace {

using graph::Graph;
using graph::TensorId;

TensorId conv(Graph& graph, const std::string& name, TensorId x, std::int64_t channels, std::int64_t kernel,
              std::int64_t groups = 1) {
  return ops::conv2d_layer(
      graph, name, x,
      {.channels = channels, .kernel = {kernel, kernel}, .padding = {kernel / 2, kernel / 2}, .groups = groups});
}

TensorId pool(Graph& graph, const std::string& name, const std::string& op, TensorId x, std::int64_t kernel) {
  return ops::pool_layer(graph, name, op, x, {.kernel = {kernel, kernel}, .stride = ops::Pair{2, 2}});
}

Graph begin(DType precision, const std::string& name) {
  Graph graph;
  graph.name = name;
  graph.precision = precision;
  return graph;
}

Graph finish(Graph graph, TensorId logits, const ops::Optimizer& optimizer) {
  ops::loss_layer(graph, logits);
  ops::add_backward_and_update(graph, optimizer);
  return graph;
}

} // namespace

Graph network(const NetworkSize& size, DType precision) {
  Graph g = begin(precision, "kernels");
  const std::int64_t channels = size.channels;
  TensorId x = ops::input_source(g, size.batch, {3, size.image, size.image});
  x = conv(g, "stem", x, channels, 5);
  x = ops::batch_norm_layer(g, "norm", x, {});
  x = ops::pointwise_layer(g, "relu", "relu", x);
  x = ops::add_layer(g, "sum", {x, conv(g, "body", x, channels, 3)});
  x = ops::lrn_layer(g, "lrn", x, {.size = 5});
  x = pool(g, "max", "max_pool", x, 3);
  x = conv(g, "wide", x, 2 * channels, 1);
  for (const auto& [op, attributes] : ops::activations()) x = ops::pointwise_layer(g, "act_" + op, op, x);
  x = ops::group_norm_layer(g, "group_norm", x, {.groups = 2});
  x = ops::concat_layer(g, "join", {conv(g, "left", x, channels, 3), conv(g, "right", x, channels, 3, 2)});
  x = pool(g, "average", "avg_pool", x, 2);
  x = ops::layer_norm_layer(g, "layer_norm", x, {.over = "channels"});
  x = conv(g, "last", x, 2 * channels, 3);
  x = ops::flatten_layer(g, "flatten", x);
  x = ops::dropout_layer(g, "drop", x, 0.5, 1);
  x = ops::dense_layer(g, "fc1", x, {.units = size.width});
  x = ops::dense_layer(g, "fc2", ops::activate(g, "relu", x), {.units = size.width});
  return finish(std::move(g), ops::dense_layer(g, "fc3", x, {.units = 10}), {.momentum = 0.9, .weight_decay = 1e-4});
}

Graph dense_network(std::int64_t batch, std::int64_t width, DType precision) {
  Graph g = begin(precision, "products");
  TensorId x = ops::input_source(g, batch, {width});
  for (const char* name : {"fc1", "fc2"}) x = ops::dense_layer(g, name, x, {.units = width});
  return finish(std::move(g), ops::dense_layer(g, "fc3", x, {.units = 10}), {});
}

Graph optimizer_network(const std::string& optimizer, std::int64_t width, DType precision) {
  Graph g = begin(precision, optimizer);
  TensorId x = ops::input_source(g, 4, {width});
  x = ops::dense_layer(g, "fc1", x, {.units = width});
  return finish(std::move(g), ops::dense_layer(g, "fc2", x, {.units = 10}), {.name = optimizer});
}

Graph relu_network(std::int64_t rows) {
  Graph g = begin(DType::f32, "memory");
  TensorId x = ops::input_source(g, rows, {8});
  x = ops::dense_layer(g, "fc1", x, {.units = 1024, .bias = false});
  x = ops::pointwise_layer(g, "relu", "relu", x);
  return finish(std::move(g), ops::dense_layer(g, "fc2", x, {.units = 8, .bias = false}), {});
}

} // namespace soybean::calibrate
