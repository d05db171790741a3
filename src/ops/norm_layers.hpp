#pragma once
// Appends normalising layers to a Graph, for frontends and tests, like the functions of layers.hpp. Names, defaults and
// initial values are those of torch.nn. All throw Error naming the layer when something does not fit.
#include "graph/graph.hpp"

#include <string>

namespace soybean::ops {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1; ///< of the running statistics
  bool affine = true;    ///< parameters weight (ones) and bias (zeros)
};
/// x is [B, C, H, W] or [B, K]. Makes the states `<layer>.running_mean` (zeros) and `<layer>.running_var` (ones), which
/// validation reads.
graph::TensorId batch_norm_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                                 const BatchNormOptions& options);

} // namespace soybean::ops
