// Cases of the layers of transformers: tokens become sequences, whose every position is classified.
#include "ops/case_parts.hpp"
#include "ops/losses.hpp"
#include "ops/norm_layers.hpp"
#include "ops/sequence_layers.hpp"

namespace soybean::ops_test {

using graph::Graph;
using graph::TensorId;

namespace {

/// Sequences of `height` tokens with so many features.
TensorId embedded(Graph& graph, const Sizes& s, std::int64_t features) {
  const TensorId tokens = ops::tokens_source(graph, s.batch, {.length = s.height, .vocabulary = s.units + 3});
  return ops::embedding_layer(graph, "embedding", tokens, {.embedding_dim = features});
}

Graph trained(Graph& graph, const ops::LossesOptions& options) {
  ops::add_losses(graph, options);
  ops::add_backward_and_update(graph, {.momentum = 0.9});
  return std::move(graph);
}

/// Classifies every position by its features.
Graph trained(Graph& graph, TensorId x) {
  return trained(graph, {.terms = {{.input = x}}});
}

Graph embedding(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId tokens = ops::tokens_source(graph, s.batch, {.length = s.height, .vocabulary = s.units + 3});
  return trained(graph, ops::embedding_layer(graph, "embedding", tokens,
                                             {.num_embeddings = s.units + 5, .embedding_dim = s.channels + 1}));
}

Graph positional(DType precision, const Sizes& s, std::int64_t more) {
  Graph graph = start(precision);
  const TensorId x = embedded(graph, s, s.channels + 1);
  return trained(graph, ops::positional_embedding_layer(graph, "positions", x,
                                                        {.num_embeddings = more == 0 ? 0 : s.height + more}));
}
Graph positional_embedding(DType precision, const Sizes& s) {
  return positional(precision, s, 0);
}
Graph positional_embedding_longer(DType precision, const Sizes& s) {
  return positional(precision, s, 3);
}

Graph rotary(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::rotary_layer(graph, "rotary", embedded(graph, s, 12), {.heads = 3, .base = 100});
  return trained(graph, ops::activate(graph, "tanh", x));
}

Graph rms(DType precision, const Sizes& s, bool affine) {
  Graph graph = start(precision);
  const TensorId x = embedded(graph, s, s.channels + 1);
  return trained(graph, ops::rms_norm_layer(graph, "norm", x, {.eps = 0.1, .affine = affine}));
}
Graph rms_norm(DType precision, const Sizes& s) {
  return rms(precision, s, true);
}
Graph rms_norm_plain(DType precision, const Sizes& s) {
  return rms(precision, s, false);
}
Graph rms_norm_features(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  return finish(graph, ops::rms_norm_layer(graph, "norm", scaled_input(graph, s.batch, {s.channels + 2}), {}));
}

Graph dense_on_sequence(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  TensorId x = embedded(graph, s, s.channels + 1);
  x = ops::activate(graph, "gelu", ops::dense_layer(graph, "hidden", x, {.units = s.units + 1}));
  return trained(graph, ops::dense_layer(graph, "output", x, {.units = s.units, .bias = false}));
}

/// With biases only where queries and keys are rotated: else no score depends on that of the keys but for a constant.
Graph attention(DType precision, const Sizes& s, const ops::AttentionOptions& options, std::int64_t features) {
  Graph graph = start(precision);
  return trained(graph, ops::attention_layer(graph, "attention", {embedded(graph, s, features)}, options));
}
Graph attention_whole(DType precision, const Sizes& s) {
  return attention(precision, s, {.heads = 2, .bias = false}, 2 * s.channels);
}
Graph attention_causal(DType precision, const Sizes& s) {
  return attention(precision, s, {.heads = 3, .head_dim = 2, .causal = true, .bias = false}, s.channels);
}
Graph attention_grouped(DType precision, const Sizes& s) {
  return attention(precision, s, {.heads = 6, .kv_heads = 3, .causal = true, .rotary = 50}, 12);
}
/// One head of keys and values for all, of a longer sequence than the queries'.
Graph attention_crossed(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = scaled_input(graph, s.batch, {4, s.height, 1});
  const TensorId other =
      ops::pad_layer(graph, "longer", ops::pointwise_layer(graph, "other", "sigmoid", x), {1, 0, 2, 0});
  return finish(graph, ops::scaled_dot_product_attention_layer(graph, "attention",
                                                               {x, ops::slice_layer(graph, "keys", other, 0, 2),
                                                                ops::slice_layer(graph, "values", other, 2, 4)},
                                                               {.heads = 2, .kv_heads = 1}));
}

/// The same matrix before and after; it gets both gradients.
Graph tied(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = ops::activate(graph, "tanh", embedded(graph, s, s.channels + 1));
  return trained(graph, ops::dense_layer(graph, "output", x, {.bias = false, .tied = "embedding"}));
}

Graph sequence_loss(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = embedded(graph, s, 12);
  return trained(graph, {.terms = {{.name = "main", .input = x, .label_smoothing = 0.1, .parts = 1},
                                   {.name = "split", .input = x, .weight = 0.5, .parts = 4}},
                         .top_k = 2});
}
Graph sequence_loss_split(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  const TensorId x = embedded(graph, s, 12);
  return trained(graph, {.terms = {{.name = "main", .input = x, .label_smoothing = 0.1, .parts = 6}}, .top_k = 2});
}

/// A whole block, as in GPT-2 but for its norms.
Graph transformer(DType precision, const Sizes& s) {
  Graph graph = start(precision);
  TensorId x = ops::positional_embedding_layer(graph, "positions", embedded(graph, s, 8), {});
  const TensorId a =
      ops::attention_layer(graph, "attention", {ops::layer_norm_layer(graph, "norm_1", x, {.over = "channels"})},
                           {.heads = 2, .causal = true, .bias = false});
  x = ops::add_layer(graph, "sum_1", {x, a});
  TensorId h = ops::dense_layer(graph, "up", ops::rms_norm_layer(graph, "norm_2", x, {}), {.units = s.units + 1});
  h = ops::dense_layer(graph, "down", ops::activate(graph, "gelu", h), {.units = 8});
  x = ops::add_layer(graph, "sum_2", {x, h});
  return trained(graph, ops::dense_layer(graph, "output", x, {.bias = false, .tied = "embedding"}));
}

} // namespace

const std::vector<Case>& sequence_cases() {
  static const std::vector<Case> all = {
      {"embedding", embedding},
      {"positional_embedding", positional_embedding},
      {"positional_embedding_longer", positional_embedding_longer},
      {"rotary", rotary},
      {"rms_norm", rms_norm},
      {"rms_norm_plain", rms_norm_plain},
      {"rms_norm_features", rms_norm_features},
      {"dense_on_sequence", dense_on_sequence},
      {"attention_whole", attention_whole},
      {"attention_causal", attention_causal},
      {"attention_grouped", attention_grouped},
      {"attention_crossed", attention_crossed},
      {"tied", tied},
      {"sequence_loss", sequence_loss},
      {"sequence_loss_split", sequence_loss_split},
      {"transformer", transformer},
  };
  return all;
}

} // namespace soybean::ops_test
