#pragma once
// Appends layers that calculate with their inputs, for frontends and tests, like the functions of layers.hpp. All throw
// Error naming the layer when something does not fit.
#include "graph/graph.hpp"

#include <string>

namespace soybean::ops {

/// op: scale (factor), shift (by), pow (exponent), sqrt, exp, log, abs, clamp (min, max); attributes are real numbers.
graph::TensorId arithmetic_layer(graph::Graph& graph, const std::string& name, const std::string& op, graph::TensorId x,
                                 const graph::Attributes& attributes = {});
graph::TensorId neg_layer(graph::Graph& graph, const std::string& name, graph::TensorId x);
/// op: mul, sub, div, maximum, minimum. Either operand may be repeated along channels or image dims where its extent is
/// 1, or be [B, C] for [B, C, 1, 1].
graph::TensorId binary_layer(graph::Graph& graph, const std::string& name, const std::string& op, graph::TensorId a,
                             graph::TensorId b);
/// a + b where one of them is repeated.
graph::TensorId add_repeated_layer(graph::Graph& graph, const std::string& name, graph::TensorId a, graph::TensorId b);

struct ReduceOptions {
  bool mean = true;     ///< or the sum
  Shape dims;           ///< some of 1 (channels, features), 2 and 3 (both or none); ascending
  bool keepdim = false; ///< the dims stay, with extent 1; else [B, C], for dims 2 and 3 alone
};
/// Layer "mean" or "sum".
graph::TensorId reduce_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                             const ReduceOptions& options);

/// op: softmax or log_softmax, over channels or features.
graph::TensorId softmax_layer(graph::Graph& graph, const std::string& name, const std::string& op, graph::TensorId x);

} // namespace soybean::ops
