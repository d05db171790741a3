// Readers of the layers of transformers.
#include "ops/sequence_layers.hpp"
#include "frontend/layers.hpp"
#include "ops/norm_layers.hpp"

#include <fmt/format.h>

namespace soybean::frontend {

namespace {

using config::Limits;
using config::required;
using config::Table;
using graph::Graph;
using graph::TensorId;
using Inputs = std::vector<TensorId>;

constexpr Limits from_one{.low = 1};

/// Key `kv_heads`: a divisor of heads.
std::int64_t read_kv_heads(const Table& table, std::int64_t heads) {
  const std::int64_t kv_heads = table.integer("kv_heads", heads, from_one);
  if (heads % kv_heads != 0) table.reject("kv_heads", fmt::format("a divisor of heads, {}", heads));
  return kv_heads;
}

} // namespace

Append read_embedding(const Table& table, const ModelOptions& model) {
  table.known({"num_embeddings", "embedding_dim", "init", "init_std"});
  const ops::EmbeddingOptions options{
      .num_embeddings = table.has("num_embeddings") ? table.integer("num_embeddings", required, from_one) : 0,
      .embedding_dim = table.integer("embedding_dim", required, from_one),
      .init = read_init(table, model.init),
  };
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::embedding_layer(graph, name, inputs[0], options);
  };
}

Append read_positional_embedding(const Table& table, const ModelOptions& model) {
  table.known({"num_embeddings", "init", "init_std"});
  const ops::EmbeddingOptions options{
      .num_embeddings = table.has("num_embeddings") ? table.integer("num_embeddings", required, from_one) : 0,
      .init = read_init(table, model.init),
  };
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::positional_embedding_layer(graph, name, inputs[0], options);
  };
}

namespace {

double read_base(const Table& table, std::string_view key, double fallback) {
  const double base = table.real(key, fallback);
  if (base <= 1) table.reject(key, "a number above 1", "Llama's is 10000");
  return base;
}

} // namespace

Append read_rotary(const Table& table, const ModelOptions&) {
  const ops::RotaryOptions options{.heads = table.integer("heads", required, from_one),
                                   .base = read_base(table, "base", 10000)};
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::rotary_layer(graph, name, inputs[0], options);
  };
}

Append read_scaled_dot_product_attention(const Table& table, const ModelOptions&) {
  table.known({"heads", "kv_heads", "causal"});
  ops::AttentionOptions options{.heads = table.integer("heads", required, from_one)};
  options.kv_heads = read_kv_heads(table, options.heads);
  options.causal = table.boolean("causal", false);
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::scaled_dot_product_attention_layer(graph, name, inputs, options);
  };
}

Append read_attention(const Table& table, const ModelOptions& model) {
  table.known(
      {"heads", "kv_heads", "head_dim", "causal", "rotary", "units", "bias", "init", "init_std", "output_init_std"});
  ops::AttentionOptions options{.heads = table.integer("heads", required, from_one)};
  options.kv_heads = read_kv_heads(table, options.heads);
  if (table.has("head_dim")) options.head_dim = table.integer("head_dim", required, from_one);
  options.causal = table.boolean("causal", false);
  if (table.has("rotary")) options.rotary = read_base(table, "rotary", 0);
  if (table.has("units")) options.units = table.integer("units", required, from_one);
  options.bias = table.boolean("bias", true) && model.bias;
  options.init = read_init(table, model.init);
  options.output_init = read_deviation(table, "output_init_std", options.init);
  return [options, where = table](Graph& graph, const std::string& name, const Inputs& inputs) {
    if (inputs.size() == 2) where.reject("inputs", "one, or those of queries, keys and values");
    return ops::attention_layer(graph, name, inputs, options);
  };
}

Append read_rms_norm(const Table& table, const ModelOptions&) {
  ops::RmsNormOptions options;
  options.eps = table.real("eps", options.eps);
  if (options.eps <= 0) table.reject("eps", "a number above 0");
  options.affine = table.boolean("affine", options.affine);
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::rms_norm_layer(graph, name, inputs[0], options);
  };
}

} // namespace soybean::frontend
