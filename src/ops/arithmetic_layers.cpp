#include "ops/arithmetic_layers.hpp"

#include "base/error.hpp"
#include "ops/building.hpp"

namespace soybean::ops {

using graph::Graph;
using graph::TensorId;

TensorId arithmetic_layer(Graph& graph, const std::string& name, const std::string& op, TensorId x,
                          const graph::Attributes& attributes) {
  return single(graph, name, op, attributes, {x});
}

TensorId neg_layer(Graph& graph, const std::string& name, TensorId x) {
  const std::int32_t layer = add_layer_entry(graph, name, "neg");
  return append(graph, {.name = name, .op = "scale", .attributes = {{"factor", -1.0}}, .inputs = {x}, .layer = layer})
      .front();
}

TensorId binary_layer(Graph& graph, const std::string& name, const std::string& op, TensorId a, TensorId b) {
  return single(graph, name, op, {}, {a, b});
}

TensorId add_repeated_layer(Graph& graph, const std::string& name, TensorId a, TensorId b) {
  const std::int32_t layer = add_layer_entry(graph, name, "add");
  return append(graph, {.name = name, .op = "add_repeated", .inputs = {a, b}, .layer = layer}).front();
}

TensorId reduce_layer(Graph& graph, const std::string& name, TensorId x, const ReduceOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, options.mean ? "mean" : "sum");
  const Shape shape = graph.tensors[x].shape;
  double count = 1;
  for (std::int64_t d : options.dims)
    if (d >= 0 && d < static_cast<std::int64_t>(shape.size())) count *= static_cast<double>(shape[d]);
  const std::int64_t rank = options.keepdim || shape.size() == 2 ? static_cast<std::int64_t>(shape.size()) : 2;
  if (!options.keepdim && shape.size() == 2)
    fail("{}: keepdim, got false for features expected true. a sum over them leaves no dim but the batch",
         where(name, options.mean ? "mean" : "sum"));
  return append(graph,
                {.name = name,
                 .op = "reduce",
                 .attributes = {{"dims", options.dims}, {"rank", rank}, {"factor", options.mean ? 1 / count : 1.0}},
                 .inputs = {x},
                 .layer = layer})
      .front();
}

TensorId softmax_layer(Graph& graph, const std::string& name, const std::string& op, TensorId x) {
  return single(graph, name, op, {}, {x});
}

} // namespace soybean::ops
