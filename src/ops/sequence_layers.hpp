#pragma once
// Appends the layers of transformers to a Graph, for frontends and tests, like the functions of layers.hpp. A sequence
// of T positions with C features each is [B, C, T, 1], an image of T rows and one column, which is stored position by
// position; layers that look at each position alone (dense, norms over channels, activations) take it as it is. All
// throw Error naming the layer when something does not fit.
#include "graph/graph.hpp"
#include "ops/layers.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace soybean::ops {

/// Source "input" of one batch of sequences of tokens, integers in [0, vocabulary).
struct Tokens {
  std::int64_t length = 0, vocabulary = 0;
};
graph::TensorId tokens_source(graph::Graph& graph, std::int64_t batch, const Tokens& tokens);

struct EmbeddingOptions {
  std::int64_t num_embeddings = 0; ///< rows; 0: as many as there are tokens, or positions
  std::int64_t embedding_dim = 0;  ///< of positions that of their input
  Initial init = {};               ///< standard: normal of deviation 1 (torch.nn.Embedding)
};
/// tokens [B, T] → [B, embedding_dim, T, 1].
graph::TensorId embedding_layer(graph::Graph& graph, const std::string& name, graph::TensorId tokens,
                                const EmbeddingOptions& options);
/// x + a row of weight [num_embeddings, C] for each position.
graph::TensorId positional_embedding_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                                           const EmbeddingOptions& options);

struct RotaryOptions {
  std::int64_t heads = 1;
  double base = 10000;
};
graph::TensorId rotary_layer(graph::Graph& graph, const std::string& name, graph::TensorId x,
                             const RotaryOptions& options);

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0; ///< 0: as many as heads; else a divisor of them, each shared by heads / kv_heads
  std::int64_t head_dim = 0; ///< 0: the input's features divided by heads
  bool causal = false;
  double rotary = 0;        ///< above 0: queries and keys are rotated, with this base
  std::int64_t units = 0;   ///< of the result; 0: the input's features
  bool bias = true;         ///< of the four projections
  Initial init = {};        ///< of the projections
  Initial output_init = {}; ///< of the last one
};
/// torch.nn.functional.scaled_dot_product_attention of queries [B, heads·D, T, 1] and keys and values
/// [B, kv_heads·D, S, 1]. Only heads, kv_heads and causal count.
graph::TensorId scaled_dot_product_attention_layer(graph::Graph& graph, const std::string& name,
                                                   const std::vector<graph::TensorId>& inputs,
                                                   const AttentionOptions& options);
/// torch.nn.MultiheadAttention of one input, or of the sources of queries, keys and values: dense layers
/// `<name>.query`, `<name>.key`, `<name>.value`, the attention itself and the dense layer `<name>.output`, each tiled
/// by itself.
graph::TensorId attention_layer(graph::Graph& graph, const std::string& name,
                                const std::vector<graph::TensorId>& inputs, const AttentionOptions& options);

} // namespace soybean::ops
