#pragma once
// The kinds of layers a model file may name: one row each, saying how many inputs it takes and how its keys are read.
// Private to src/frontend.
#include "config/table.hpp"
#include "graph/graph.hpp"
#include "ops/layers.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::frontend {

/// What holds for all layers of a model.
struct ModelOptions {
  bool bias = true; ///< false drops all biases
  ops::Initial init = {};
  bool sequences = false; ///< samples are tokens, what is made of them sequences
  std::uint64_t seed = 1; ///< of the run, for dropout
};

/// Appends a layer of that name to a graph and returns its result.
using Append =
    std::function<graph::TensorId(graph::Graph&, const std::string& name, const std::vector<graph::TensorId>& inputs)>;

constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

struct LayerKind {
  std::string_view op;
  std::size_t least_inputs = 1, most_inputs = 1;
  bool activation = false; ///< takes the key `activation`
  /// Reads the layer's keys; what it returns throws only errors of shape, which name the layer.
  Append (*read)(const config::Table& layer, const ModelOptions& model);
};

const std::vector<LayerKind>& layer_kinds();
/// Operators that are designed but not built.
const std::vector<std::string>& later_layers();

// Readers of shape_layers.cpp, for the rows.
Append read_identity(const config::Table& layer, const ModelOptions& model);
Append read_concat(const config::Table& layer, const ModelOptions& model);
Append read_slice(const config::Table& layer, const ModelOptions& model);
Append read_reshape(const config::Table& layer, const ModelOptions& model);
Append read_permute(const config::Table& layer, const ModelOptions& model);
Append read_transpose(const config::Table& layer, const ModelOptions& model);
Append read_pad(const config::Table& layer, const ModelOptions& model);
Append read_upsample(const config::Table& layer, const ModelOptions& model);

// Readers of arithmetic_layers.cpp, for the rows.
Append read_batch_norm(const config::Table& layer, const ModelOptions& model);
Append read_group_norm(const config::Table& layer, const ModelOptions& model);
Append read_layer_norm(const config::Table& layer, const ModelOptions& model);
Append read_lrn(const config::Table& layer, const ModelOptions& model);
Append read_softmax(const config::Table& layer, const ModelOptions& model);
Append read_function(const config::Table& layer, const ModelOptions& model);
Append read_scale(const config::Table& layer, const ModelOptions& model);
Append read_shift(const config::Table& layer, const ModelOptions& model);
Append read_pow(const config::Table& layer, const ModelOptions& model);
Append read_clamp(const config::Table& layer, const ModelOptions& model);
Append read_neg(const config::Table& layer, const ModelOptions& model);
Append read_binary(const config::Table& layer, const ModelOptions& model);
Append read_reduce(const config::Table& layer, const ModelOptions& model);

// Readers of sequence_layers.cpp, for the rows.
Append read_embedding(const config::Table& layer, const ModelOptions& model);
Append read_positional_embedding(const config::Table& layer, const ModelOptions& model);
Append read_rotary(const config::Table& layer, const ModelOptions& model);
Append read_scaled_dot_product_attention(const config::Table& layer, const ModelOptions& model);
Append read_attention(const config::Table& layer, const ModelOptions& model);
Append read_rms_norm(const config::Table& layer, const ModelOptions& model);

/// Keys `init` and `init_std` of a layer or model.
ops::Initial read_init(const config::Table& table, const ops::Initial& fallback);
/// `init` with the deviation that a key holds, if it is there; only of normal weights.
ops::Initial read_deviation(const config::Table& table, std::string_view key, const ops::Initial& init);
/// Key `activation`: one of ops::activations(), or "" when absent.
std::string read_activation(const config::Table& table);

} // namespace soybean::frontend
