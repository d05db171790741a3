// Cases of layers that calculate with their inputs: functions with constants, two operands of which one may be
// repeated, sums, softmax.
#include "ops/arithmetic_layers.hpp"
#include "ops/case_parts.hpp"

#include <string>

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

TensorId function(Graph& graph, const std::string& op, TensorId x, const graph::Attributes& attributes = {}) {
  return ops::arithmetic_layer(graph, op + std::to_string(graph.layers.size()), op, x, attributes);
}

/// |x| + 0.5, for what is defined above 0.
TensorId positive(Graph& graph, TensorId x) {
  return function(graph, "shift", function(graph, "abs", x), {{"by", 0.5}});
}

Graph constants(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  TensorId x = function(graph, "scale", scaled_images(graph, s), {{"factor", -1.5}});
  x = function(graph, "clamp", x, {{"min", -0.4}, {"max", 0.6}});
  return finish(graph, ops::neg_layer(graph, "neg", function(graph, "shift", x, {{"by", 0.25}})));
}
Graph powers(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = positive(graph, scaled_images(graph, s));
  const TensorId a = function(graph, "pow", x, {{"exponent", 2.0}}),
                 b = function(graph, "pow", x, {{"exponent", -0.7}});
  return finish(graph, ops::add_layer(graph, "sum", {a, b, function(graph, "sqrt", x)}));
}
Graph logarithms(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId a = function(graph, "exp", x), b = function(graph, "log", positive(graph, x));
  return finish(graph, ops::binary_layer(graph, "difference", "sub", a, b));
}

/// Both operands of one shape.
Graph alike(DType precision, const Sizes& s, const std::string& op) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId other = positive(graph, ops::pointwise_layer(graph, "other", "tanh", x));
  return finish(graph, ops::binary_layer(graph, "y", op, x, other), {.weight_decay = 0.1});
}
Graph sub(DType precision, const Sizes& s) {
  return alike(precision, s, "sub");
}
Graph div(DType precision, const Sizes& s) {
  return alike(precision, s, "div");
}
Graph maximum(DType precision, const Sizes& s) {
  return alike(precision, s, "maximum");
}
Graph minimum(DType precision, const Sizes& s) {
  return alike(precision, s, "minimum");
}

/// Images against what is left of them after a mean, in both orders.
Graph repeated(DType precision, const Sizes& s, const std::string& op, const ops::ReduceOptions& reduced) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId small = positive(graph, ops::reduce_layer(graph, "small", x, reduced));
  const bool adds = op == "add";
  const auto join = [&](const std::string& name, TensorId a, TensorId b) {
    return adds ? ops::add_layer(graph, name, {a, b}) : ops::binary_layer(graph, name, op, a, b);
  };
  const TensorId first = join("first", x, small), second = join("second", small, positive(graph, x));
  // The tanh keeps the two from cancelling in the gradient.
  return finish(graph, ops::add_layer(graph, "both", {first, ops::activate(graph, "tanh", second)}));
}
Graph add_per_channel(DType precision, const Sizes& s) {
  return repeated(precision, s, "add", {.dims = {2, 3}, .keepdim = true});
}
Graph mul_per_channel(DType precision, const Sizes& s) { // [B, C], the gate of a squeeze and excitation
  return repeated(precision, s, "mul", {.dims = {2, 3}});
}
Graph sub_per_position(DType precision, const Sizes& s) {
  return repeated(precision, s, "sub", {.dims = {1}, .keepdim = true});
}
Graph div_per_sample(DType precision, const Sizes& s) {
  return repeated(precision, s, "div", {.dims = {1, 2, 3}, .keepdim = true});
}
Graph maximum_per_channel(DType precision, const Sizes& s) {
  return repeated(precision, s, "maximum", {.dims = {2, 3}, .keepdim = true});
}
Graph minimum_per_position(DType precision, const Sizes& s) {
  return repeated(precision, s, "minimum", {.dims = {1}, .keepdim = true});
}
/// One per channel against one per position: both are repeated.
Graph repeated_both(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId a = ops::reduce_layer(graph, "a", x, {.dims = {2, 3}, .keepdim = true});
  const TensorId b = positive(graph, ops::reduce_layer(graph, "b", x, {.mean = false, .dims = {1}, .keepdim = true}));
  const TensorId product = ops::binary_layer(graph, "product", "mul", a, b);
  const TensorId quotient = ops::binary_layer(graph, "quotient", "div", a, b);
  const TensorId most = ops::binary_layer(graph, "most", "maximum", a, b);
  return finish(graph, ops::add_layer(graph, "all", {product, quotient, most}));
}
/// A parameter with one value per channel.
Graph repeated_vector(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const auto vector = [&](const std::string& name) {
    return ops::append_source(graph, {.name = name,
                                      .shape = {s.channels},
                                      .dtype = precision,
                                      .role = graph::Role::parameter,
                                      .init = {graph::Init::constant, 1}});
  };
  const TensorId y = ops::binary_layer(graph, "scaled_channels", "mul", x, vector("gamma"));
  return finish(graph, ops::binary_layer(graph, "shifted", "sub", y, vector("beta")), {.momentum = 0.9});
}
Graph features_against_one(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_input(graph, s.batch, {s.channels + 2});
  const TensorId sum = ops::reduce_layer(graph, "sum", x, {.mean = false, .dims = {1}, .keepdim = true});
  return finish(graph, ops::binary_layer(graph, "y", "mul", x, sum));
}
/// A flattened image, whose channels are not split.
Graph sum_of_flattened(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  const TensorId mean = ops::reduce_layer(graph, "mean", x, {.dims = {1}, .keepdim = true});
  return finish(graph, ops::dense_layer(graph, "out", mean, {.units = s.units + 1}));
}
/// A sum of a mean, which every position of the image is multiplied by.
Graph mean_of_channels(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_images(graph, s);
  const TensorId mean = ops::reduce_layer(graph, "mean", x, {.dims = {1}, .keepdim = true});
  const TensorId sum = ops::reduce_layer(graph, "sum", ops::activate(graph, "tanh", mean),
                                         {.mean = false, .dims = {1, 2, 3}, .keepdim = true});
  return finish(graph, ops::binary_layer(graph, "y", "mul", x, sum));
}

Graph softmax_of(DType precision, const Sizes& s, const std::string& op) {
  Graph graph = start(precision);
  return finish(graph, ops::softmax_layer(graph, "y", op, scaled_images(graph, s)));
}
Graph softmax(DType precision, const Sizes& s) {
  return softmax_of(precision, {.batch = s.batch, .channels = s.channels + 1, .height = s.height, .width = s.width},
                    "softmax");
}
Graph log_softmax(DType precision, const Sizes& s) {
  return softmax_of(precision, {.batch = s.batch, .channels = s.channels + 1, .height = s.height, .width = s.width},
                    "log_softmax");
}
Graph softmax_of_features(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_input(graph, s.batch, {s.channels + 1});
  return finish(graph, ops::softmax_layer(graph, "y", "softmax", x));
}
Graph softmax_of_flattened(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::flatten_layer(graph, "flat", scaled_images(graph, s));
  return finish(graph, ops::softmax_layer(graph, "y", "log_softmax", x));
}

} // namespace

const std::vector<Case>& arithmetic_cases() {
  static const std::vector<Case> all = {
      {"constants", constants},
      {"powers", powers},
      {"logarithms", logarithms},
      {"sub", sub},
      {"div", div},
      {"maximum", maximum},
      {"minimum", minimum},
      {"add_per_channel", add_per_channel},
      {"mul_per_channel", mul_per_channel},
      {"sub_per_position", sub_per_position},
      {"div_per_sample", div_per_sample},
      {"maximum_per_channel", maximum_per_channel},
      {"minimum_per_position", minimum_per_position},
      {"repeated_both", repeated_both},
      {"repeated_vector", repeated_vector},
      {"features_against_one", features_against_one},
      {"sum_of_flattened", sum_of_flattened},
      {"mean_of_channels", mean_of_channels},
      {"softmax", softmax},
      {"log_softmax", log_softmax},
      {"softmax_of_features", softmax_of_features},
      {"softmax_of_flattened", softmax_of_flattened},
  };
  return all;
}

} // namespace soybean::ops_test
