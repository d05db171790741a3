#pragma once
// Builds the forward part of a Graph layer by layer, for frontends and tests: sources, parameters with their
// initializers, nodes. A layer's node is named as the layer, its further nodes `<layer>.bias_add`, `<layer>.relu`, its
// parameters `<layer>.weight`, `<layer>.bias`. Names, defaults and initial values are those of torch.nn.
// All throw Error naming the layer when something does not fit.
#include "graph/graph.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace soybean::ops {

using Pair = std::array<std::int64_t, 2>;  ///< height, width
using Edges = std::array<std::int64_t, 4>; ///< top, left, bottom, right

/// How a layer's weights begin; fans as torch.nn.init counts them.
enum class Scheme : std::uint8_t {
  standard,              ///< "default": weight and bias uniform in ±1/√fan_in (torch.nn.Conv2d, Linear)
  kaiming_normal,        ///< normal of deviation √(2/fan_out), bias 0
  kaiming_normal_fan_in, ///< normal of deviation √(2/fan_in), bias 0
  xavier_uniform,        ///< uniform in ±√(6/(fan_in + fan_out)), bias 0
  normal,                ///< normal of the given deviation, bias 0
};
/// A scheme and the deviation that `normal` has.
struct Initial {
  Scheme scheme = Scheme::standard;
  double deviation = 0.01;
  Initial() = default;
  Initial(Scheme of, double normal_deviation = 0.01) : scheme(of), deviation(normal_deviation) {}
};
/// The scheme of that name ("default" is standard). Throws Error, `where` being the key's place, for another name.
Scheme parse_scheme(std::string_view text, std::string_view where);

/// Source "input" of one batch: `sample` is [C, H, W] or [K] (any one or three dims).
graph::TensorId input_source(graph::Graph& graph, std::int64_t batch, const Shape& sample);
/// Source "hyper" (learning rate, step), made on first call.
graph::TensorId hyper_source(graph::Graph& graph);

struct Conv2dOptions {
  std::int64_t channels = 0;
  Pair kernel{};
  Pair stride{1, 1};
  Pair padding{0, 0};
  Pair dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  Initial init = {};
  std::optional<Edges> edges = {}; ///< padding that is not the same at both ends, instead: a node `<layer>.pad`
};
graph::TensorId conv2d_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                             const Conv2dOptions& options);

struct ConvTranspose2dOptions {
  std::int64_t channels = 0;
  Pair kernel{};
  Pair stride{1, 1};
  Pair padding{0, 0};
  Pair output_padding{0, 0}; ///< more rows and columns at the end, less than the stride
  Pair dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  Initial init = {};
};
graph::TensorId conv_transpose2d_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                                       const ConvTranspose2dOptions& options);

struct DenseOptions {
  std::int64_t units = 0;
  bool bias = true;
  Initial init = {};
  std::string tied = ""; ///< a layer whose weight [units, features] it takes in place of one of its own
};
/// Of features, or of those of every position of a sequence (sequence_layers.hpp).
graph::TensorId dense_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                            const DenseOptions& options);

/// The operators a layer's `activation` key may name, with PyTorch's defaults of their attributes.
const std::vector<std::pair<std::string, graph::Attributes>>& activations();
/// op: one of activations(). `attributes` replace defaults: leaky_relu: slope (0.01); elu: alpha (1); gelu: approximate
/// ("none", or "tanh").
graph::TensorId pointwise_layer(graph::Graph& graph, const std::string& name, const std::string& op, graph::TensorId x,
                                const graph::Attributes& attributes = {});
/// The same, with its defaults, as a further node `<layer>.<op>` of the layer that made x (a layer's `activation` key).
graph::TensorId activate(graph::Graph& graph, const std::string& op, graph::TensorId x);

struct PoolOptions {
  Pair kernel{};
  std::optional<Pair> stride; ///< the kernel, if not given
  Pair padding{0, 0};
  std::optional<Edges> edges;    ///< padding that is not the same at both ends, instead
  Pair dilation{1, 1};           ///< max_pool
  bool ceil_mode = false;        ///< sizes of the result are rounded up
  bool count_include_pad = true; ///< avg_pool divides by the padding, too
};
/// op: "max_pool" or "avg_pool".
graph::TensorId pool_layer(graph::Graph& graph, const std::string& name, const std::string& op, graph::TensorId x,
                           const PoolOptions& options);
graph::TensorId global_avg_pool_layer(graph::Graph& graph, const std::string& name, graph::TensorId x);

graph::TensorId dropout_layer(graph::Graph& graph, const std::string& name, graph::TensorId x, double rate,
                              std::uint64_t seed);
graph::TensorId flatten_layer(graph::Graph& graph, const std::string& name, graph::TensorId x);
/// Terms of one shape, or two of which one is repeated (arithmetic_layers.hpp).
graph::TensorId add_layer(graph::Graph& graph, const std::string& name, const std::vector<graph::TensorId>& terms);
graph::TensorId mul_layer(graph::Graph& graph, const std::string& name, graph::TensorId a, graph::TensorId b);

/// Joined along channels or features.
graph::TensorId concat_layer(graph::Graph& graph, const std::string& name, const std::vector<graph::TensorId>& parts);
/// Channels (or features) [begin, end).
graph::TensorId slice_layer(graph::Graph& graph, const std::string& name, graph::TensorId x, std::int64_t begin,
                            std::int64_t end);
/// The elements of each sample as [features] or [channels, height, width]; one size may be -1, which is then the rest.
graph::TensorId reshape_layer(graph::Graph& graph, const std::string& name, graph::TensorId x, Shape sample);
/// Dim d of the result is dim dims[d] of x; dims[0] is 0, the batch.
graph::TensorId permute_layer(graph::Graph& graph, const std::string& name, graph::TensorId x, const Shape& dims);
/// Zeros around images.
graph::TensorId pad_layer(graph::Graph& graph, const std::string& name, graph::TensorId x, const Edges& padding);

struct UpsampleOptions {
  std::optional<Pair> size;  ///< of the result; or
  std::optional<Pair> scale; ///< times the image's; one of them must be given
  bool bilinear = false;     ///< the nearest pixel otherwise
  bool align_corners = false;
};
graph::TensorId upsample_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                               const UpsampleOptions& options);

/// Layer "loss", softmax_cross_entropy of logits [B, K]: makes the sources "labels" and "sample_weights", sets metrics
/// (loss, loss.correct) and logits. Call it last.
void loss_layer(graph::Graph& graph, graph::TensorId logits);

} // namespace soybean::ops
