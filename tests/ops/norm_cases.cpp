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

} // namespace

const std::vector<Case>& norm_cases() {
  static const std::vector<Case> all = {
      {"batch_norm", batch_norm},
      {"batch_norm_plain", batch_norm_plain},
      {"batch_norm_features", batch_norm_features},
  };
  return all;
}

} // namespace soybean::ops_test
