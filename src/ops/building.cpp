#include "ops/building.hpp"

#include "base/error.hpp"
#include "ops/common.hpp"

#include <fmt/format.h>

#include <cmath>

namespace soybean::ops {

using graph::Graph;
using graph::Init;
using graph::Initializer;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

std::string where(const std::string& name, std::string_view op) {
  return fmt::format("layer '{}' ({})", name, op);
}

Shape shape_of(const Pair& pair) {
  return {pair[0], pair[1]};
}

std::int32_t add_layer_entry(Graph& graph, const std::string& name, std::string_view op) {
  for (const graph::Layer& layer : graph.layers)
    if (layer.name == name)
      fail("{}: name, got '{}', which is in use, expected a new one. rename the layer", where(name, op), name);
  graph.layers.push_back({name, std::string(op)});
  return static_cast<std::int32_t>(graph.layers.size()) - 1;
}

TensorId single(Graph& graph, const std::string& name, const std::string& op, graph::Attributes attributes,
                std::vector<TensorId> inputs) {
  const std::int32_t layer = add_layer_entry(graph, name, op);
  return append(
             graph,
             {.name = name, .op = op, .attributes = std::move(attributes), .inputs = std::move(inputs), .layer = layer})
      .front();
}

Initializer weight_initializer(const Initial& initial, const Fan& fan) {
  switch (initial.scheme) {
  case Scheme::standard:
    return {Init::uniform, 1 / std::sqrt(fan.in)};
  case Scheme::kaiming_normal:
    return {Init::normal, std::sqrt(2 / fan.out)};
  case Scheme::kaiming_normal_fan_in:
    return {Init::normal, std::sqrt(2 / fan.in)};
  case Scheme::xavier_uniform:
    return {Init::uniform, std::sqrt(6 / (fan.in + fan.out))};
  case Scheme::normal:
    return {Init::normal, initial.deviation};
  }
  throw Bug("unknown Scheme");
}

Initializer bias_initializer(const Initial& initial, const Fan& fan) {
  if (initial.scheme == Scheme::standard) return {Init::uniform, 1 / std::sqrt(fan.in)};
  return {};
}

TensorId parameter(Graph& graph, const std::string& layer, std::string_view op, Tensor tensor) {
  expect_size(where(layer, op), tensor.name, tensor.shape);
  tensor.name = layer + "." + tensor.name;
  tensor.dtype = graph.precision;
  tensor.role = Role::parameter;
  return append_source(graph, std::move(tensor));
}

TensorId add_bias(Graph& graph, const std::string& name, TensorId y, const Initializer& init) {
  const std::int32_t layer = static_cast<std::int32_t>(graph.layers.size()) - 1;
  const TensorId bias = parameter(
      graph, name, graph.layers[layer].op,
      {.name = "bias", .shape = {graph.tensors[y].shape[1]}, .units = {graph.tensors[y].units[1]}, .init = init});
  return append(graph, {.name = name + ".bias_add", .op = "bias", .inputs = {y, bias}, .layer = layer}).front();
}

} // namespace soybean::ops
