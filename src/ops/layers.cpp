#include "ops/layers.hpp"

#include "ops/arithmetic_layers.hpp"

#include "base/error.hpp"
#include "base/hash.hpp"
#include "ops/building.hpp"
#include "ops/common.hpp"
#include "ops/losses.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::ops {

using graph::Graph;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

Scheme parse_scheme(std::string_view text, std::string_view where) {
  if (text == "default") return Scheme::standard;
  if (text == "kaiming_normal") return Scheme::kaiming_normal;
  if (text == "kaiming_normal_fan_in") return Scheme::kaiming_normal_fan_in;
  if (text == "xavier_uniform") return Scheme::xavier_uniform;
  if (text == "normal") return Scheme::normal;
  fail("{}: init, got '{}' expected default, kaiming_normal, kaiming_normal_fan_in, xavier_uniform or normal", where,
       text);
}

TensorId input_source(Graph& graph, std::int64_t batch, const Shape& sample) {
  if (batch < 1) fail("input: batch, got {} expected at least 1", batch);
  if (sample.size() != 1 && sample.size() != 3)
    fail("input: sample, got {} dims ({}) expected [channels, height, width] or [features]", sample.size(),
         to_string(sample));
  Shape shape{batch};
  shape.insert(shape.end(), sample.begin(), sample.end());
  expect_size("input", "batch of samples", shape);
  return append_source(graph, {.name = "input",
                               .shape = shape,
                               .dtype = graph.precision,
                               .role = Role::input,
                               .spatial = image_spatial(shape)});
}

TensorId hyper_source(Graph& graph) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].role == Role::hyper) return static_cast<TensorId>(t);
  return append_source(graph, {.name = "hyper", .shape = {2}, .dtype = DType::f64, .role = Role::hyper});
}

TensorId conv2d_layer(Graph& graph, const std::string& name, TensorId x, const Conv2dOptions& given) {
  Conv2dOptions options = given;
  Edges more{}; // what the ends lack of being alike
  if (given.edges)
    for (std::size_t d = 0; d < 2; ++d) {
      options.padding[d] = std::min((*given.edges)[d], (*given.edges)[d + 2]);
      more[d] = (*given.edges)[d] - options.padding[d];
      more[d + 2] = (*given.edges)[d + 2] - options.padding[d];
    }
  const std::int32_t layer = add_layer_entry(graph, name, "conv2d");
  const std::string at = where(name, "conv2d");
  const Shape image = graph.tensors[x].shape;
  if (options.channels < 1) fail("{}: channels, got {} expected at least 1", at, options.channels);
  if (options.kernel[0] < 1 || options.kernel[1] < 1)
    fail("{}: kernel, got {} expected at least 1x1", at, to_string(shape_of(options.kernel)));
  if (image.size() != 4)
    fail("{}: input, got {} dims ({}) expected 4. a convolution needs images of channels, height and width", at,
         image.size(), to_string(image));
  if (options.groups < 1 || image[1] % options.groups != 0)
    fail("{}: groups, got {} with {} input channels expected a divisor of them", at, options.groups, image[1]);
  if (options.channels % options.groups != 0)
    fail("{}: groups, got {} with {} channels expected a divisor of them", at, options.groups, options.channels);
  const Shape shape{options.channels, image[1] / options.groups, options.kernel[0], options.kernel[1]};
  expect_size(at, "weight", shape);
  const double window = static_cast<double>(shape[2] * shape[3]);
  const Fan fan{static_cast<double>(shape[1]) * window, static_cast<double>(shape[0]) * window};
  const bool grouped = options.groups > 1;
  const TensorId weight = parameter(
      graph, name, "conv2d",
      {.name = "weight",
       .shape = shape,
       .units = {grouped ? options.channels / options.groups : 1, grouped ? 1 : graph.tensors[x].units[1], 1, 1},
       .init = weight_initializer(options.init, fan)});
  if (more != Edges{})
    x = append(graph, {.name = name + ".pad",
                       .op = "pad",
                       .attributes = {{"padding", Shape(more.begin(), more.end())}},
                       .inputs = {x},
                       .layer = layer})
            .front();
  const TensorId y = append(graph, {.name = name,
                                    .op = "conv2d",
                                    .attributes = {{"kernel", shape_of(options.kernel)},
                                                   {"stride", shape_of(options.stride)},
                                                   {"padding", shape_of(options.padding)},
                                                   {"dilation", shape_of(options.dilation)},
                                                   {"groups", options.groups}},
                                    .inputs = {x, weight},
                                    .layer = layer})
                         .front();
  return options.bias ? add_bias(graph, name, y, bias_initializer(options.init, fan)) : y;
}

namespace {

/// The weight of the layer that a dense layer is tied to.
TensorId tied_weight(const Graph& graph, const std::string& at, const Tensor& source, const DenseOptions& options) {
  const TensorId weight = graph::find_tensor(graph, options.tied + ".weight");
  const bool is_matrix =
      weight != graph::none && graph.tensors[weight].role == Role::parameter && graph.tensors[weight].shape.size() == 2;
  if (!is_matrix)
    fail("{}: tied, got '{}' expected an earlier embedding or dense layer, whose weight it takes", at, options.tied);
  const Tensor& tensor = graph.tensors[weight];
  const Shape wanted{options.units > 0 ? options.units : tensor.shape[0], source.shape[1]};
  if (tensor.shape != wanted)
    fail("{}: tied, got a weight of {} expected {}, units times the input's features", at, to_string(tensor.shape),
         to_string(wanted));
  if (tensor.units[1] != source.units[1] || tensor.spatial != (source.shape.size() == 2 ? source.spatial : 1))
    fail("{}: tied, got the weight of features of a flattened image expected plain ones", at);
  return weight;
}

} // namespace

TensorId dense_layer(Graph& graph, const std::string& name, TensorId x, const DenseOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "dense");
  const std::string at = where(name, "dense");
  const Tensor source = graph.tensors[x];
  if (options.units < 1 && options.tied.empty()) fail("{}: units, got {} expected at least 1", at, options.units);
  if (source.shape.size() != 2 && !is_sequence(source.shape))
    fail("{}: input, got {} dims ({}) expected 2. put a flatten layer before it", at, source.shape.size(),
         to_string(source.shape));
  const Fan fan{static_cast<double>(source.shape[1]), static_cast<double>(options.units)};
  const TensorId weight = !options.tied.empty() ? tied_weight(graph, at, source, options)
                                                : parameter(graph, name, "dense",
                                                            {.name = "weight",
                                                             .shape = {options.units, source.shape[1]},
                                                             .units = {1, source.units[1]},
                                                             .spatial = source.shape.size() == 2 ? source.spatial : 1,
                                                             .init = weight_initializer(options.init, fan)});
  const TensorId y = append(graph, {.name = name, .op = "dense", .inputs = {x, weight}, .layer = layer}).front();
  return options.bias ? add_bias(graph, name, y, bias_initializer(options.init, fan)) : y;
}

const std::vector<std::pair<std::string, graph::Attributes>>& activations() {
  static const std::vector<std::pair<std::string, graph::Attributes>> all = {
      {"relu", {}},
      {"relu6", {}},
      {"leaky_relu", {{"slope", 0.01}}},
      {"elu", {{"alpha", 1.0}}},
      {"gelu", {{"approximate", std::string("none")}}},
      {"silu", {}},
      {"hard_swish", {}},
      {"tanh", {}},
      {"sigmoid", {}},
  };
  return all;
}

namespace {

graph::Attributes activation_defaults(const std::string& op) {
  for (const auto& [name, attributes] : activations())
    if (name == op) return attributes;
  throw Bug(fmt::format("'{}' is no activation", op));
}

} // namespace

TensorId pointwise_layer(Graph& graph, const std::string& name, const std::string& op, TensorId x,
                         const graph::Attributes& attributes) {
  graph::Attributes all = activation_defaults(op);
  for (const auto& [key, value] : attributes.items()) all.set(key, value);
  return single(graph, name, op, all, {x});
}

TensorId activate(Graph& graph, const std::string& op, TensorId x) {
  const graph::NodeId producer = graph.tensors[x].producer;
  ensure(producer != graph::none && graph.nodes[producer].layer != graph::none, "activation of no layer");
  const std::int32_t layer = graph.nodes[producer].layer;
  return append(graph, {.name = graph.layers[layer].name + "." + op,
                        .op = op,
                        .attributes = activation_defaults(op),
                        .inputs = {x},
                        .layer = layer})
      .front();
}

TensorId pool_layer(Graph& graph, const std::string& name, const std::string& op, TensorId x,
                    const PoolOptions& options) {
  const Edges edges =
      options.edges.value_or(Edges{options.padding[0], options.padding[1], options.padding[0], options.padding[1]});
  const bool even = edges[0] == edges[2] && edges[1] == edges[3];
  graph::Attributes attributes{{"kernel", shape_of(options.kernel)},
                               {"stride", shape_of(options.stride.value_or(options.kernel))},
                               {"padding", Shape(edges.begin(), even ? edges.begin() + 2 : edges.end())}};
  if (options.dilation != Pair{1, 1}) attributes.set("dilation", shape_of(options.dilation));
  if (options.ceil_mode) attributes.set("ceil_mode", std::int64_t{1});
  if (!options.count_include_pad) attributes.set("count_include_pad", std::int64_t{0});
  return single(graph, name, op, std::move(attributes), {x});
}

TensorId global_avg_pool_layer(Graph& graph, const std::string& name, TensorId x) {
  return single(graph, name, "global_avg_pool", {}, {x});
}

TensorId dropout_layer(Graph& graph, const std::string& name, TensorId x, double rate, std::uint64_t seed) {
  return single(graph, name, "dropout",
                {{"rate", rate},
                 {"seed", static_cast<std::int64_t>(seed)},
                 {"stream", static_cast<std::int64_t>(hash_text(name))}},
                {x, hyper_source(graph)});
}

TensorId flatten_layer(Graph& graph, const std::string& name, TensorId x) {
  return single(graph, name, "flatten", {}, {x});
}

TensorId add_layer(Graph& graph, const std::string& name, const std::vector<TensorId>& terms) {
  if (terms.size() == 2 && graph.tensors[terms[0]].shape != graph.tensors[terms[1]].shape)
    return add_repeated_layer(graph, name, terms[0], terms[1]);
  return single(graph, name, "add", {}, terms);
}

TensorId mul_layer(Graph& graph, const std::string& name, TensorId a, TensorId b) {
  return single(graph, name, "mul", {}, {a, b});
}

void loss_layer(Graph& graph, TensorId logits) {
  add_losses(graph, {.terms = {{.input = logits}}});
}

} // namespace soybean::ops
