#include "ops/cases.hpp"

#include "base/philox.hpp"
#include "ops/arithmetic_layers.hpp"
#include "ops/case_parts.hpp"

#include <array>
#include <string>
#include <utility>

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

Graph pointwise(DType precision, const Sizes& s, const std::string& op) {
  Graph graph = start(precision);
  return finish(graph, ops::pointwise_layer(graph, "y", op, scaled_images(graph, s)));
}
Graph relu(DType precision, const Sizes& s) {
  return pointwise(precision, s, "relu");
}
Graph relu6(DType precision, const Sizes& s) { // of both bounds
  Graph graph = start(precision);
  const TensorId x = ops::arithmetic_layer(graph, "wide", "scale", scaled_images(graph, s), {{"factor", 4.0}});
  return finish(graph, ops::pointwise_layer(graph, "y", "relu6", x));
}
Graph tanh(DType precision, const Sizes& s) {
  return pointwise(precision, s, "tanh");
}
Graph sigmoid(DType precision, const Sizes& s) {
  return pointwise(precision, s, "sigmoid");
}

Graph activated(DType precision, const Sizes& s, const std::string& op, const graph::Attributes& attributes = {}) {
  Graph graph = start(precision);
  return finish(graph, ops::pointwise_layer(graph, "y", op, scaled_images(graph, s), attributes));
}
Graph leaky_relu(DType precision, const Sizes& s) {
  return activated(precision, s, "leaky_relu", {{"slope", 0.2}});
}
Graph elu(DType precision, const Sizes& s) {
  return activated(precision, s, "elu", {{"alpha", 0.7}});
}
Graph gelu(DType precision, const Sizes& s) {
  return activated(precision, s, "gelu");
}
Graph gelu_tanh(DType precision, const Sizes& s) {
  return activated(precision, s, "gelu", {{"approximate", std::string("tanh")}});
}
Graph silu(DType precision, const Sizes& s) {
  return activated(precision, s, "silu");
}
Graph hard_swish(DType precision, const Sizes& s) {
  return activated(precision, s, "hard_swish");
}

Graph convolution(DType precision, const Sizes& s, ops::Conv2dOptions options) {
  Graph graph = start(precision);
  if (options.channels == 0) options.channels = s.units;
  const TensorId x = ops::conv2d_layer(graph, "conv", scaled_images(graph, s), options);
  return finish(graph, ops::activate(graph, "tanh", x));
}
Graph conv_padded(DType precision, const Sizes& s) {
  return convolution(precision, s, {.kernel = {3, 3}, .padding = {1, 1}});
}
Graph conv_pointwise(DType precision, const Sizes& s) {
  return convolution(precision, s, {.kernel = {1, 1}, .bias = false});
}
Graph conv_strided(DType precision, const Sizes& s) {
  return convolution(precision, s, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {0, 1}});
}
Graph conv_dilated(DType precision, const Sizes& s) {
  return convolution(precision, s, {.kernel = {2, 3}, .padding = {1, 2}, .dilation = {2, 2}});
}
Graph conv_grouped(DType precision, const Sizes& given) {
  Sizes s = given;
  s.channels = 3 * given.channels;
  return convolution(precision, s, {.channels = 3 * given.units, .kernel = {3, 3}, .padding = {1, 1}, .groups = 3});
}
Graph conv_depthwise(DType precision, const Sizes& s) {
  return convolution(precision, s,
                     {.channels = 2 * s.channels, .kernel = {2, 2}, .stride = {2, 2}, .groups = s.channels});
}

Graph dense(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  TensorId x = scaled_input(graph, s.batch, {s.channels * s.width});
  x = ops::activate(graph, "sigmoid", ops::dense_layer(graph, "hidden", x, {.units = s.units + 1}));
  return finish(graph, ops::dense_layer(graph, "output", x, {.units = s.units}),
                {.momentum = 0.9, .weight_decay = 0.01});
}
/// The first dense layer reads a flattened image, so its weight has the image's physical order.
Graph dense_on_image(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  x = ops::dropout_layer(graph, "drop", ops::activate(graph, "relu", x), 0.4, 7);
  return finish(graph, ops::dense_layer(graph, "output", x, {.units = s.units}),
                {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
}

Graph pool(DType precision, const Sizes& s, const std::string& op, const ops::PoolOptions& options) {
  Graph graph = start(precision);
  return finish(graph, ops::pool_layer(graph, "pool", op, scaled_images(graph, s), options));
}
Graph max_pool(DType precision, const Sizes& s) {
  return pool(precision, s, "max_pool", {.kernel = {2, 2}});
}
Graph max_pool_overlapping(DType precision, const Sizes& s) {
  return pool(precision, s, "max_pool", {.kernel = {3, 3}, .stride = ops::Pair{2, 2}, .padding = {1, 1}});
}
Graph max_pool_asymmetric(DType precision, const Sizes& s) {
  return pool(precision, s, "max_pool", {.kernel = {3, 2}, .stride = ops::Pair{1, 3}, .padding = {1, 0}});
}
Graph avg_pool(DType precision, const Sizes& s) {
  return pool(precision, s, "avg_pool", {.kernel = {2, 2}});
}
Graph avg_pool_overlapping(DType precision, const Sizes& s) {
  return pool(precision, s, "avg_pool", {.kernel = {3, 3}, .stride = ops::Pair{2, 2}, .padding = {1, 1}});
}
Graph avg_pool_asymmetric(DType precision, const Sizes& s) {
  return pool(precision, s, "avg_pool", {.kernel = {2, 3}, .stride = ops::Pair{3, 1}, .padding = {1, 0}});
}
Graph global_avg_pool(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(graph, ops::global_avg_pool_layer(graph, "pool", scaled_images(graph, s)));
}

Graph dropout(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(graph, ops::dropout_layer(graph, "drop", scaled_images(graph, s), 0.3, 11));
}

/// Residual joins of two and of three terms, whose gradients are added in turn.
Graph add(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId a = ops::pointwise_layer(graph, "a", "tanh", x), b = ops::pointwise_layer(graph, "b", "sigmoid", x);
  const TensorId two = ops::add_layer(graph, "two", {x, a});
  return finish(graph, ops::add_layer(graph, "three", {two, b, x}), {.momentum = 0.5});
}
Graph gate(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  return finish(graph, ops::mul_layer(graph, "gate", x, ops::pointwise_layer(graph, "a", "sigmoid", x)),
                {.weight_decay = 0.1});
}

std::vector<Case> common_cases() {
  return {
      {"relu", relu},
      {"relu6", relu6},
      {"tanh", tanh},
      {"sigmoid", sigmoid},
      {"leaky_relu", leaky_relu},
      {"elu", elu},
      {"gelu", gelu},
      {"gelu_tanh", gelu_tanh},
      {"silu", silu},
      {"hard_swish", hard_swish},
      {"conv_padded", conv_padded},
      {"conv_pointwise", conv_pointwise},
      {"conv_strided", conv_strided},
      {"conv_dilated", conv_dilated},
      {"conv_grouped", conv_grouped},
      {"conv_depthwise", conv_depthwise},
      {"dense", dense},
      {"dense_on_image", dense_on_image},
      {"max_pool", max_pool},
      {"max_pool_overlapping", max_pool_overlapping},
      {"max_pool_asymmetric", max_pool_asymmetric},
      {"avg_pool", avg_pool},
      {"avg_pool_overlapping", avg_pool_overlapping},
      {"avg_pool_asymmetric", avg_pool_asymmetric},
      {"global_avg_pool", global_avg_pool},
      {"dropout", dropout},
      {"add", add},
      {"gate", gate},
  };
}

} // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> joined = common_cases();
    for (const auto& more :
         {shape_cases(), loss_cases(), norm_cases(), arithmetic_cases(), sequence_cases(), optimizer_cases()})
      joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }();
  return all;
}

Sizes random_sizes(std::uint64_t seed) {
  const philox::Stream stream{seed, 0, 0};
  auto draw = [&, i = std::uint64_t{0}](const auto& from) mutable {
    return from[philox::bits(stream, i++) % from.size()];
  };
  constexpr std::array<std::int64_t, 7> batches{1, 2, 3, 4, 5, 7, 9};
  constexpr std::array<std::int64_t, 9> channels{1, 2, 3, 4, 5, 8, 13, 17, 70};
  constexpr std::array<std::int64_t, 6> extents{3, 4, 5, 7, 8, 11};
  return {draw(batches), draw(channels), draw(extents), draw(extents), draw(channels)};
}

} // namespace soybean::ops_test
