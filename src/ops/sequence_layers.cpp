#include "ops/sequence_layers.hpp"

#include "base/error.hpp"
#include "ops/building.hpp"
#include "ops/common.hpp"

#include <limits>

namespace soybean::ops {

using graph::Graph;
using graph::Init;
using graph::Role;
using graph::TensorId;

TensorId tokens_source(Graph& graph, std::int64_t batch, const Tokens& tokens) {
  constexpr std::int64_t most_tokens = std::numeric_limits<std::int32_t>::max();
  if (batch < 1) fail("input: batch, got {} expected at least 1", batch);
  if (tokens.vocabulary < 1 || tokens.vocabulary > most_tokens)
    fail("input: vocabulary, got {} expected 1 to {}", tokens.vocabulary, most_tokens);
  const Shape shape{batch, tokens.length};
  expect_size("input", "batch of samples", shape);
  graph.vocabulary = tokens.vocabulary;
  return append_source(graph, {.name = "input", .shape = shape, .dtype = DType::i32, .role = Role::input});
}

namespace {

graph::Initializer table_initializer(const Initial& initial) {
  return {Init::normal, initial.scheme == Scheme::normal ? initial.deviation : 1.0};
}

} // namespace

TensorId embedding_layer(Graph& graph, const std::string& name, TensorId tokens, const EmbeddingOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "embedding");
  const std::string at = where(name, "embedding");
  const std::int64_t rows = options.num_embeddings > 0 ? options.num_embeddings : graph.vocabulary;
  if (graph.tensors[tokens].dtype != DType::i32)
    fail("{}: input, got numbers expected tokens. set model.vocabulary and let the layer take `input`", at);
  if (rows < graph.vocabulary)
    fail("{}: num_embeddings, got {} expected at least {}, model.vocabulary", at, rows, graph.vocabulary);
  if (options.embedding_dim < 1) fail("{}: embedding_dim, got {} expected at least 1", at, options.embedding_dim);
  const TensorId weight =
      parameter(graph, name, "embedding",
                {.name = "weight", .shape = {rows, options.embedding_dim}, .init = table_initializer(options.init)});
  return append(graph, {.name = name, .op = "embedding", .inputs = {tokens, weight}, .layer = layer}).front();
}

TensorId positional_embedding_layer(Graph& graph, const std::string& name, TensorId x,
                                    const EmbeddingOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "positional_embedding");
  const graph::Tensor& sequence = graph.tensors[x];
  expect_sequence(where(name, "positional_embedding"), sequence.shape);
  const std::int64_t rows = options.num_embeddings > 0 ? options.num_embeddings : sequence.shape[2];
  const TensorId weight = parameter(graph, name, "positional_embedding",
                                    {.name = "weight",
                                     .shape = {rows, sequence.shape[1]},
                                     .units = {1, sequence.units[1]},
                                     .init = table_initializer(options.init)});
  return append(graph, {.name = name, .op = "positional_embedding", .inputs = {x, weight}, .layer = layer}).front();
}

TensorId rotary_layer(Graph& graph, const std::string& name, TensorId x, const RotaryOptions& options) {
  return single(graph, name, "rotary", {{"heads", options.heads}, {"base", options.base}, {"inverse", std::int64_t{0}}},
                {x});
}

TensorId scaled_dot_product_attention_layer(Graph& graph, const std::string& name, const std::vector<TensorId>& inputs,
                                            const AttentionOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "scaled_dot_product_attention");
  return append(graph, {.name = name,
                        .op = "attention",
                        .attributes = {{"heads", options.heads},
                                       {"kv_heads", options.kv_heads > 0 ? options.kv_heads : options.heads},
                                       {"causal", std::int64_t{options.causal}}},
                        .inputs = inputs,
                        .layer = layer})
      .front();
}

TensorId attention_layer(Graph& graph, const std::string& name, const std::vector<TensorId>& inputs,
                         const AttentionOptions& options) {
  const std::string at = where(name, "attention");
  expect_sequence(at, graph.tensors[inputs[0]].shape);
  const std::int64_t features = graph.tensors[inputs[0]].shape[1];
  if (options.heads < 1) fail("{}: heads, got {} expected at least 1", at, options.heads);
  if (options.head_dim == 0 && features % options.heads != 0)
    fail("{}: heads, got {} with {} features expected a divisor of them, or a head_dim", at, options.heads, features);
  const std::int64_t width = options.head_dim > 0 ? options.head_dim : features / options.heads;
  const std::int64_t kv_heads = options.kv_heads > 0 ? options.kv_heads : options.heads;
  const auto project = [&](const char* what, TensorId x, std::int64_t heads) {
    expect_sequence(at, graph.tensors[x].shape);
    const TensorId y =
        dense_layer(graph, name + "." + what, x, {.units = heads * width, .bias = options.bias, .init = options.init});
    return options.rotary > 0 && what != std::string("value")
               ? rotary_layer(graph, name + "." + what + ".rotary", y, {.heads = heads, .base = options.rotary})
               : y;
  };
  const bool several = inputs.size() == 3;
  const TensorId q = project("query", inputs[0], options.heads);
  const TensorId k = project("key", several ? inputs[1] : inputs[0], kv_heads);
  const TensorId v = project("value", several ? inputs[2] : inputs[0], kv_heads);
  const TensorId y = scaled_dot_product_attention_layer(graph, name, {q, k, v}, options);
  return dense_layer(
      graph, name + ".output", y,
      {.units = options.units > 0 ? options.units : features, .bias = options.bias, .init = options.output_init});
}

} // namespace soybean::ops
