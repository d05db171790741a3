// Cases of what is trained for: losses of classes, of elements, and sums of several.
#include "ops/case_parts.hpp"
#include "ops/losses.hpp"

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

Graph trained_for(Graph& graph, const ops::LossesOptions& options) {
  ops::add_losses(graph, options);
  ops::add_backward_and_update(graph, {});
  return std::move(graph);
}

/// Flattened images as logits, in their physical order.
Graph smoothed_top_k(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  return trained_for(graph, {.terms = {{.input = x, .label_smoothing = 0.2}}, .top_k = 3});
}

/// The same loss in steps.
Graph split_softmax(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId y = ops::dense_layer(graph, "y", x, {.units = 12});
  return trained_for(graph, {.terms = {{.name = "main", .input = y, .label_smoothing = 0.2, .parts = 4},
                                       {.name = "plain", .input = y, .weight = 0.5, .parts = 6}},
                             .top_k = 3});
}

Graph on_labels(DType precision, const Sizes& s, const std::string& op, std::int64_t units) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId y = units == 0 ? x : ops::dense_layer(graph, "y", x, {.units = units});
  return trained_for(graph, {.terms = {{.op = op, .input = y}}});
}
Graph mse_one_hot(DType precision, const Sizes& s) {
  return on_labels(precision, s, "mse", 0);
}
Graph mse_values(DType precision, const Sizes& s) {
  return on_labels(precision, s, "mse", 1);
}
Graph bce_one_hot(DType precision, const Sizes& s) {
  return on_labels(precision, s, "binary_cross_entropy", s.units + 1);
}
Graph bce_one_hot_image(DType precision, const Sizes& s) {
  return on_labels(precision, s, "binary_cross_entropy", 0);
}

/// Images that should become the samples, once as images, once as features.
Graph mse_samples(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  return trained_for(graph, {.terms = {{.op = "mse", .input = x, .against = ops::Against::samples}}});
}
Graph bce_samples(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId y = ops::dense_layer(graph, "y", x, {.units = s.channels * s.height * s.width});
  return trained_for(graph, {.terms = {{.op = "binary_cross_entropy", .input = y, .against = ops::Against::samples}}});
}

/// Numbers of images, of their flattened form, and of features, in one graph the same ones.
Graph on_targets(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId flat = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId y = ops::dense_layer(graph, "y", flat, {.units = s.channels * s.height * s.width});
  return trained_for(
      graph, {.terms = {{.name = "main", .op = "mse", .input = y, .against = ops::Against::targets},
                        {.name = "image", .op = "mse", .input = flat, .weight = 2, .against = ops::Against::targets},
                        {.name = "bits",
                         .op = "binary_cross_entropy",
                         .input = y,
                         .weight = 0.5,
                         .against = ops::Against::targets}}});
}
Graph on_image_targets(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  return trained_for(graph, {.terms = {{.op = "mse", .input = x, .against = ops::Against::targets}}});
}

/// Mixed samples: logits of a flattened image, plain ones, and the loss in steps.
Graph mixed(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  return trained_for(graph, {.terms = {{.input = x, .label_smoothing = 0.2}}, .top_k = 3, .mixed = true});
}
Graph split_mixed(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId y = ops::dense_layer(graph, "y", x, {.units = 12});
  return trained_for(graph, {.terms = {{.name = "main", .input = y, .label_smoothing = 0.2, .parts = 4},
                                       {.name = "plain", .input = y, .weight = 0.5, .parts = 6},
                                       {.name = "whole", .input = y, .weight = 0.2, .parts = 1}},
                             .top_k = 3,
                             .mixed = true});
}

Graph several(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s), flat = ops::flatten_layer(graph, "flat", x);
  const TensorId aux = ops::dense_layer(graph, "aux", flat, {.units = s.units + 2});
  const TensorId y = ops::dense_layer(graph, "y", ops::activate(graph, "tanh", aux), {.units = s.units + 2});
  return trained_for(
      graph, {.terms = {{.name = "help", .input = aux, .weight = 0.3, .label_smoothing = 0.1},
                        {.name = "main", .input = y},
                        {.name = "shape", .op = "mse", .input = x, .weight = 2, .against = ops::Against::samples},
                        {.name = "bits", .op = "binary_cross_entropy", .input = y, .weight = 0.5}},
              .main = 1,
              .top_k = 2});
}

} // namespace

const std::vector<Case>& loss_cases() {
  static const std::vector<Case> all = {
      {"smoothed_top_k", smoothed_top_k},
      {"split_softmax", split_softmax},
      {"mse_one_hot", mse_one_hot},
      {"mse_values", mse_values},
      {"bce_one_hot", bce_one_hot},
      {"bce_one_hot_image", bce_one_hot_image},
      {"on_targets", on_targets},
      {"on_image_targets", on_image_targets},
      {"mixed", mixed},
      {"split_mixed", split_mixed},
      {"mse_samples", mse_samples},
      {"bce_samples", bce_samples},
      {"several_losses", several},
  };
  return all;
}

} // namespace soybean::ops_test
