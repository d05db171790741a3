// Cases of layers that join, cut, reorder, pad and resize, and of windows with uneven padding or rounded up.
#include "ops/case_parts.hpp"

#include <string>
#include <utility>

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

/// Images of three different channel counts joined, one of them twice.
Graph concat(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId a = ops::pointwise_layer(graph, "a", "tanh", x);
  const TensorId b = ops::conv2d_layer(graph, "b", x, {.channels = s.units, .kernel = {1, 1}});
  return finish(graph, ops::concat_layer(graph, "concat", {a, b, x, a}));
}
/// Flattened images of one size, then one of another, and a plain vector.
Graph concat_flat(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId flat = ops::flatten_layer(graph, "flat", x), a = ops::pointwise_layer(graph, "a", "tanh", flat);
  const TensorId same = ops::concat_layer(graph, "same", {flat, a});
  const TensorId pooled = ops::pool_layer(graph, "pool", "avg_pool", x, {.kernel = {2, 2}});
  const TensorId other = ops::flatten_layer(graph, "other", pooled);
  const TensorId plain = ops::dense_layer(graph, "plain", flat, {.units = s.units});
  return finish(graph, ops::concat_layer(graph, "mixed", {plain, same, other}));
}
Graph slice(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::conv2d_layer(graph, "c", scaled_images(graph, s), {.channels = 7, .kernel = {1, 1}});
  const TensorId a = ops::slice_layer(graph, "a", x, 2, 5), b = ops::slice_layer(graph, "b", x, 4, 7);
  return finish(graph, ops::mul_layer(graph, "gate", a, ops::activate(graph, "sigmoid", b)));
}
Graph slice_flat(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId image =
      ops::slice_layer(graph, "image", x, (s.channels - 1) * s.height * s.width, s.channels * s.height * s.width);
  const TensorId plain = ops::dense_layer(graph, "plain", image, {.units = 5});
  return finish(graph, ops::slice_layer(graph, "y", plain, 1, 4));
}

/// An image as another one of the same channels, of others, flattened features as an image, an image as features.
Graph reshape(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId turned = ops::reshape_layer(graph, "turned", x, {s.channels, s.width, s.height});
  const TensorId mixed = ops::reshape_layer(graph, "mixed", turned, {s.height, s.channels, -1});
  const TensorId other = ops::pointwise_layer(graph, "tanh", "tanh", mixed);
  const TensorId flat = ops::flatten_layer(graph, "flat", other);
  const TensorId image = ops::reshape_layer(graph, "image", flat, {s.channels, -1, s.height});
  return finish(graph, ops::reshape_layer(graph, "features", image, {-1}));
}
Graph permute(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId a = ops::permute_layer(graph, "a", x, {0, 1, 3, 2});
  const TensorId b = ops::permute_layer(graph, "b", ops::activate(graph, "tanh", a), {0, 2, 3, 1});
  return finish(graph, ops::permute_layer(graph, "c", ops::activate(graph, "tanh", b), {0, 2, 1, 3}));
}

Graph pad(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::pad_layer(graph, "pad", scaled_images(graph, s), {1, 0, 2, 3});
  return finish(graph, ops::pad_layer(graph, "none", ops::activate(graph, "sigmoid", x), {0, 1, 0, 0}));
}

Graph upsample(DType precision, const Sizes& s, const ops::UpsampleOptions& options) {
  Graph graph = start(precision);
  return finish(graph, ops::upsample_layer(graph, "up", scaled_images(graph, s), options));
}
Graph upsample_nearest(DType precision, const Sizes& s) {
  return upsample(precision, s, {.scale = ops::Pair{2, 3}});
}
Graph upsample_nearest_size(DType precision, const Sizes& s) {
  return upsample(precision, s, {.size = ops::Pair{7, 2}});
}
Graph upsample_bilinear(DType precision, const Sizes& s) {
  return upsample(precision, s, {.scale = ops::Pair{3, 2}, .bilinear = true});
}
Graph upsample_bilinear_size(DType precision, const Sizes& s) {
  return upsample(precision, s, {.size = ops::Pair{2, 9}, .bilinear = true});
}
Graph upsample_aligned(DType precision, const Sizes& s) {
  return upsample(precision, s, {.size = ops::Pair{9, 1}, .bilinear = true, .align_corners = true});
}

Graph transposed(DType precision, const Sizes& s, ops::ConvTranspose2dOptions options) {
  Graph graph = start(precision);
  if (options.channels == 0) options.channels = s.units;
  return finish(
      graph, ops::activate(graph, "tanh", ops::conv_transpose2d_layer(graph, "up", scaled_images(graph, s), options)));
}
Graph conv_transpose(DType precision, const Sizes& s) {
  return transposed(precision, s, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .output_padding = {1, 0}});
}
Graph conv_transpose_dilated(DType precision, const Sizes& s) {
  return transposed(precision, s, {.kernel = {2, 3}, .stride = {1, 3}, .dilation = {2, 1}, .bias = false});
}
Graph conv_transpose_grouped(DType precision, const Sizes& given) {
  Sizes s = given;
  s.channels = 2 * given.channels;
  return transposed(precision, s, {.channels = 2 * given.units, .kernel = {2, 2}, .stride = {2, 1}, .groups = 2});
}
Graph conv_transpose_depthwise(DType precision, const Sizes& s) {
  return transposed(
      precision, s,
      {.channels = s.channels, .kernel = {4, 4}, .stride = {2, 2}, .padding = {1, 1}, .groups = s.channels});
}

/// Padding that differs at the ends: a pad node before the convolution.
Graph conv_uneven(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  return finish(graph, ops::conv2d_layer(graph, "conv", x,
                                         {.channels = s.units, .kernel = {2, 4}, .edges = ops::Edges{0, 1, 1, 2}}));
}

Graph pool(DType precision, const Sizes& s, const std::string& op, const ops::PoolOptions& options) {
  Graph graph = start(precision);
  return finish(graph, ops::pool_layer(graph, "pool", op, scaled_images(graph, s), options));
}
Graph max_pool_ceil(DType precision, const Sizes& s) {
  return pool(precision, s, "max_pool", {.kernel = {3, 2}, .stride = ops::Pair{2, 3}, .ceil_mode = true});
}
Graph max_pool_uneven(DType precision, const Sizes& s) {
  return pool(precision, s, "max_pool", {.kernel = {3, 3}, .stride = ops::Pair{2, 2}, .edges = ops::Edges{0, 1, 1, 0}});
}
Graph max_pool_dilated(DType precision, const Sizes& s) {
  return pool(precision, s, "max_pool",
              {.kernel = {2, 2}, .stride = ops::Pair{1, 2}, .padding = {1, 1}, .dilation = {2, 1}, .ceil_mode = true});
}
Graph avg_pool_ceil(DType precision, const Sizes& s) {
  return pool(precision, s, "avg_pool",
              {.kernel = {3, 3}, .stride = ops::Pair{2, 2}, .padding = {1, 1}, .ceil_mode = true});
}
Graph avg_pool_image_only(DType precision, const Sizes& s) {
  return pool(
      precision, s, "avg_pool",
      {.kernel = {3, 3}, .stride = ops::Pair{2, 1}, .padding = {1, 1}, .ceil_mode = true, .count_include_pad = false});
}
Graph avg_pool_uneven(DType precision, const Sizes& s) {
  return pool(precision, s, "avg_pool", {.kernel = {3, 2}, .stride = ops::Pair{1, 2}, .edges = ops::Edges{1, 0, 0, 1}});
}

} // namespace

const std::vector<Case>& shape_cases() {
  static const std::vector<Case> all = {
      {"concat", concat},
      {"concat_flat", concat_flat},
      {"slice", slice},
      {"slice_flat", slice_flat},
      {"reshape", reshape},
      {"permute", permute},
      {"pad", pad},
      {"upsample_nearest", upsample_nearest},
      {"upsample_nearest_size", upsample_nearest_size},
      {"upsample_bilinear", upsample_bilinear},
      {"upsample_bilinear_size", upsample_bilinear_size},
      {"upsample_aligned", upsample_aligned},
      {"conv_transpose", conv_transpose},
      {"conv_transpose_dilated", conv_transpose_dilated},
      {"conv_transpose_grouped", conv_transpose_grouped},
      {"conv_transpose_depthwise", conv_transpose_depthwise},
      {"conv_uneven", conv_uneven},
      {"max_pool_ceil", max_pool_ceil},
      {"max_pool_uneven", max_pool_uneven},
      {"max_pool_dilated", max_pool_dilated},
      {"avg_pool_ceil", avg_pool_ceil},
      {"avg_pool_image_only", avg_pool_image_only},
      {"avg_pool_uneven", avg_pool_uneven},
  };
  return all;
}

} // namespace soybean::ops_test
