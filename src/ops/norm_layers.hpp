#pragma once
// Appends normalising layers to a Graph, for frontends and tests, like the functions of layers.hpp. Names, defaults and
// initial values are those of torch.nn. All throw Error naming the layer when something does not fit.
#include "graph/graph.hpp"

#include <cstdint>
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

struct GroupNormOptions {
  std::int64_t groups = 1; ///< a divisor of the channels
  double eps = 1e-5;
  bool affine = true; ///< parameters weight (ones) and bias (zeros), one per channel
};
graph::TensorId group_norm_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                                 const GroupNormOptions& options);

struct LayerNormOptions {
  /// "sample": torch.nn.LayerNorm over all dims but the batch, weight and bias of their shape; "channels": of every
  /// position over its channels, weight and bias [C].
  std::string over = "sample";
  double eps = 1e-5;
  bool affine = true;
};
graph::TensorId layer_norm_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                                 const LayerNormOptions& options);

struct RmsNormOptions {
  double eps = 1.1920928955078125e-07; ///< that of torch.nn.RMSNorm in fp32
  bool affine = true;                  ///< parameter weight (ones), one per channel
};
/// Of every position over its channels.
graph::TensorId rms_norm_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                               const RmsNormOptions& options);

struct LrnOptions {
  std::int64_t size = 1; ///< channels of the window
  double alpha = 1e-4, beta = 0.75, k = 1;
};
/// Of images.
graph::TensorId lrn_layer(graph::Graph& graph, const std::string& name, graph::TensorId x, const LrnOptions& options);

} // namespace soybean::ops
