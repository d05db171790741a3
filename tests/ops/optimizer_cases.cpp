// Cases of the operator harness: optimizers, with clipping, averages and layers trained in their own way.
#include "ops/case_parts.hpp"

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

/// A small network with every kind of parameter, updated by an optimizer: a grouped convolution, a dense layer on an
/// image, biases; one layer has a rate and a decay of its own, one is frozen.
Graph trained(DType precision, const Sizes& s, const ops::Optimizer& optimizer) {
  Graph graph = start(precision);
  TensorId x = ops::input_source(graph, s.batch, {s.channels, s.height, s.width});
  x = ops::conv2d_layer(graph, "conv", x, {.channels = 3, .kernel = {3, 3}, .padding = {1, 1}});
  graph.layers.back().lr_scale = 0.5;
  graph.layers.back().weight_decay = 0.03;
  x = ops::pointwise_layer(graph, "t", "tanh", x);
  x = ops::conv2d_layer(graph, "fixed", x, {.channels = 2, .kernel = {1, 1}});
  graph.layers.back().frozen = true;
  x = ops::flatten_layer(graph, "flat", x);
  return finish(graph, ops::dense_layer(graph, "fc", x, {.units = s.units + 1}), optimizer);
}
Graph sgd_clipped(DType precision, const Sizes& s) {
  return trained(precision, s,
                 {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true, .clip_norm = 0.1, .average_decay = 0.9});
}
Graph adam(DType precision, const Sizes& s) {
  return trained(precision, s, {.name = "adam", .weight_decay = 0.01, .average_decay = 0.9});
}
Graph adamw_amsgrad(DType precision, const Sizes& s) {
  return trained(precision, s,
                 {.name = "adamw", .weight_decay = 0.1, .amsgrad = true, .clip_norm = 0.2, .average_decay = 0.99});
}
Graph rmsprop(DType precision, const Sizes& s) {
  return trained(precision, s, {.name = "rmsprop", .weight_decay = 0.01});
}
Graph rmsprop_centered(DType precision, const Sizes& s) {
  return trained(precision, s,
                 {.name = "rmsprop", .momentum = 0.9, .centered = true, .clip_norm = 0.2, .average_decay = 0.9});
}
Graph lars(DType precision, const Sizes& s) {
  return trained(precision, s,
                 {.name = "lars", .momentum = 0.9, .weight_decay = 0.01, .clip_norm = 0.2, .average_decay = 0.9});
}
Graph lars_plain(DType precision, const Sizes& s) {
  return trained(precision, s, {.name = "lars", .decay_biases = false});
}
Graph lamb(DType precision, const Sizes& s) {
  return trained(precision, s, {.name = "lamb", .weight_decay = 0.01, .clip_norm = 0.2, .average_decay = 0.9});
}
Graph lamb_exempt(DType precision, const Sizes& s) {
  return trained(precision, s, {.name = "lamb", .weight_decay = 0.01, .decay_biases = false});
}

} // namespace

const std::vector<Case>& optimizer_cases() {
  static const std::vector<Case> all = {
      {"sgd_clipped", sgd_clipped},           {"adam", adam}, {"adamw_amsgrad", adamw_amsgrad}, {"rmsprop", rmsprop},
      {"rmsprop_centered", rmsprop_centered}, {"lars", lars}, {"lars_plain", lars_plain},       {"lamb", lamb},
      {"lamb_exempt", lamb_exempt},
  };
  return all;
}

} // namespace soybean::ops_test
