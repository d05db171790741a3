// Cases of normalising layers.
#include "ops/case_parts.hpp"
#include "ops/norm_layers.hpp"

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

Graph batch_norm(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(graph, ops::batch_norm_layer(graph, "bn", scaled_images(graph, s), {}), {.momentum = 0.9});
}
Graph batch_norm_plain(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::batch_norm_layer(graph, "bn", scaled_images(graph, s), {.eps = 0.01, .affine = false});
  return finish(graph, ops::activate(graph, "tanh", x));
}
/// Of features; more than a few samples, since those of two would always become ±1.
Graph batch_norm_features(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_input(graph, s.batch + 4, {s.channels});
  return finish(graph, ops::batch_norm_layer(graph, "bn", x, {.eps = 0.1, .momentum = 0.3}));
}

Graph group_norm(DType precision, const Sizes& given) {
  Sizes s = given;
  s.channels = 3 * given.channels;
  Graph graph = start(precision);
  const TensorId x = ops::group_norm_layer(graph, "gn", scaled_images(graph, s), {.groups = 3});
  return finish(graph, ops::activate(graph, "tanh", x));
}
Graph group_norm_plain(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::group_norm_layer(graph, "gn", scaled_images(graph, s), {.eps = 0.01, .affine = false});
  return finish(graph, ops::activate(graph, "tanh", x));
}
Graph group_norm_features(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_input(graph, s.batch, {8 * s.channels});
  return finish(graph, ops::group_norm_layer(graph, "gn", x, {.groups = 2}));
}
Graph layer_norm(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(graph, ops::layer_norm_layer(graph, "ln", scaled_images(graph, s), {}), {.momentum = 0.9});
}
Graph layer_norm_channels(DType precision, const Sizes& given) {
  Sizes s = given;
  s.channels = given.channels + 3;
  Graph graph = start(precision);
  const TensorId x = ops::layer_norm_layer(graph, "ln", scaled_images(graph, s), {.over = "channels", .eps = 0.1});
  return finish(graph, x);
}
Graph layer_norm_features(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_input(graph, s.batch, {s.channels + 5});
  return finish(graph, ops::layer_norm_layer(graph, "ln", x, {}));
}

Graph lrn(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(graph, ops::lrn_layer(graph, "lrn", scaled_images(graph, s), {.size = 5, .alpha = 0.5}));
}
Graph lrn_even(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(
      graph, ops::lrn_layer(graph, "lrn", scaled_images(graph, s), {.size = 4, .alpha = 0.3, .beta = 1.2, .k = 0.8}));
}

} // namespace

const std::vector<Case>& norm_cases() {
  static const std::vector<Case> all = {
      {"batch_norm", batch_norm},
      {"batch_norm_plain", batch_norm_plain},
      {"batch_norm_features", batch_norm_features},
      {"group_norm", group_norm},
      {"group_norm_plain", group_norm_plain},
      {"group_norm_features", group_norm_features},
      {"layer_norm", layer_norm},
      {"layer_norm_channels", layer_norm_channels},
      {"layer_norm_features", layer_norm_features},
      {"lrn", lrn},
      {"lrn_even", lrn_even},
  };
  return all;
}

} // namespace soybean::ops_test
