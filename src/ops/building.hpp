#pragma once
// What the functions that append layers (layers.hpp) share: layer entries, parameters and their initial values, biases.
// Included by src/ops/*.cpp only.
#include "ops/layers.hpp"
#include "ops/operator.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::ops {

/// "layer 'conv3' (conv2d)".
std::string where(const std::string& name, std::string_view op);
Shape shape_of(const Pair& pair);

/// Appends to graph.layers. Throws Error when the name is in use.
std::int32_t add_layer_entry(graph::Graph& graph, const std::string& name, std::string_view op);
/// A layer of one node.
graph::TensorId single(graph::Graph& graph, const std::string& name, const std::string& op,
                       graph::Attributes attributes, std::vector<graph::TensorId> inputs);

struct Fan {
  double in, out;
};
graph::Initializer weight_initializer(const Initial& initial, const Fan& fan);
graph::Initializer bias_initializer(const Initial& initial, const Fan& fan);

/// A parameter `<layer>.<tensor's name>` in the graph's precision.
graph::TensorId parameter(graph::Graph& graph, const std::string& layer, std::string_view op, graph::Tensor tensor);
/// y + bias, as a further node of the layer appended last.
graph::TensorId add_bias(graph::Graph& graph, const std::string& name, graph::TensorId y,
                         const graph::Initializer& init);

} // namespace soybean::ops
