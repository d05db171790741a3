#pragma once
// The networks of the paper, without biases, built by hand: training steps with plain SGD.
#include "graph/graph.hpp"
#include "ops/autodiff.hpp"
#include "ops/layers.hpp"

#include <string>
#include <vector>

namespace soybean::test {

inline graph::Graph finish(graph::Graph graph, graph::TensorId logits) {
  ops::loss_layer(graph, logits);
  ops::add_backward_and_update(graph, {.momentum = 0.9});
  return graph;
}

inline graph::Graph mlp(std::int64_t batch, const std::vector<std::int64_t>& widths, bool bias = false) {
  graph::Graph g;
  g.name = "mlp";
  graph::TensorId x = ops::input_source(g, batch, {widths[0]});
  for (std::size_t i = 1; i < widths.size(); ++i) {
    x = ops::dense_layer(g, "fc" + std::to_string(i), x, {.units = widths[i], .bias = bias});
    if (i + 1 < widths.size()) x = ops::activate(g, "relu", x);
  }
  return finish(std::move(g), x);
}

/// Images of `channels` × 3 × 4 that are flattened into a dense layer, as after a last convolution.
inline graph::Graph flattened(std::int64_t batch, std::int64_t channels) {
  graph::Graph g;
  g.name = "flattened";
  graph::TensorId x = ops::input_source(g, batch, {2, 3, 4});
  x = ops::conv2d_layer(g, "conv", x, {.channels = channels, .kernel = {1, 1}, .bias = false});
  x = ops::flatten_layer(g, "flatten", x);
  return finish(std::move(g), ops::dense_layer(g, "fc", x, {.units = 6, .bias = false}));
}

inline graph::TensorId conv_relu(graph::Graph& g, const std::string& name, graph::TensorId x,
                                 const ops::Conv2dOptions& options) {
  return ops::activate(g, "relu", ops::conv2d_layer(g, name, x, options));
}

inline graph::TensorId classifier(graph::Graph& g, graph::TensorId x, bool dropout_first, bool bias) {
  x = ops::flatten_layer(g, "flatten", x);
  for (int i = 6; i <= 7; ++i) {
    const std::string n = std::to_string(i);
    if (dropout_first) x = ops::dropout_layer(g, "drop" + n, x, 0.5, 1);
    x = ops::activate(g, "relu", ops::dense_layer(g, "fc" + n, x, {.units = 4096, .bias = bias}));
    if (!dropout_first) x = ops::dropout_layer(g, "drop" + n, x, 0.5, 1);
  }
  return ops::dense_layer(g, "fc8", x, {.units = 1000, .bias = bias});
}

/// torchvision's, 224 × 224.
inline graph::Graph alexnet(std::int64_t batch, bool bias = false) {
  graph::Graph g;
  g.name = "alexnet";
  const ops::PoolOptions pool{.kernel = {3, 3}, .stride = ops::Pair{2, 2}};
  graph::TensorId x = ops::input_source(g, batch, {3, 224, 224});
  x = conv_relu(g, "conv1", x, {.channels = 64, .kernel = {11, 11}, .stride = {4, 4}, .padding = {2, 2}, .bias = bias});
  x = ops::pool_layer(g, "pool1", "max_pool", x, pool);
  x = conv_relu(g, "conv2", x, {.channels = 192, .kernel = {5, 5}, .padding = {2, 2}, .bias = bias});
  x = ops::pool_layer(g, "pool2", "max_pool", x, pool);
  x = conv_relu(g, "conv3", x, {.channels = 384, .kernel = {3, 3}, .padding = {1, 1}, .bias = bias});
  x = conv_relu(g, "conv4", x, {.channels = 256, .kernel = {3, 3}, .padding = {1, 1}, .bias = bias});
  x = conv_relu(g, "conv5", x, {.channels = 256, .kernel = {3, 3}, .padding = {1, 1}, .bias = bias});
  x = ops::pool_layer(g, "pool5", "max_pool", x, pool);
  return finish(std::move(g), classifier(g, x, true, bias));
}

inline graph::Graph vgg16(std::int64_t batch, bool bias = false) {
  graph::Graph g;
  g.name = "vgg16";
  graph::TensorId x = ops::input_source(g, batch, {3, 224, 224});
  const std::vector<std::pair<std::int64_t, int>> blocks = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::string block = std::to_string(b + 1);
    for (int i = 1; i <= blocks[b].second; ++i)
      x = conv_relu(g, "conv" + block + "_" + std::to_string(i), x,
                    {.channels = blocks[b].first, .kernel = {3, 3}, .padding = {1, 1}, .bias = bias});
    x = ops::pool_layer(g, "pool" + block, "max_pool", x, {.kernel = {2, 2}});
  }
  return finish(std::move(g), classifier(g, x, false, bias));
}

} // namespace soybean::test
