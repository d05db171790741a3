// Readers of layers that calculate with their inputs or normalise them.
#include "ops/arithmetic_layers.hpp"
#include "frontend/layers.hpp"
#include "ops/norm_layers.hpp"

#include <limits>

namespace soybean::frontend {

namespace {

using config::Limits;
using config::required;
using config::Table;
using graph::Graph;
using graph::TensorId;
using Inputs = std::vector<TensorId>;

constexpr Limits from_one{.low = 1};

double read_eps(const Table& table) {
  const double eps = table.real("eps", 1e-5);
  if (eps <= 0) table.reject("eps", "a number above 0");
  return eps;
}

/// A layer of one operator with those attributes.
Append with(const Table& table, const graph::Attributes& attributes) {
  return [op = table.text("op", required), attributes](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::arithmetic_layer(graph, name, op, inputs[0], attributes);
  };
}

} // namespace

Append read_batch_norm(const Table& table, const ModelOptions&) {
  ops::BatchNormOptions options{.eps = read_eps(table)};
  options.momentum = table.real("momentum", options.momentum);
  if (options.momentum < 0 || options.momentum > 1) table.reject("momentum", "at least 0 and at most 1");
  options.affine = table.boolean("affine", options.affine);
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::batch_norm_layer(graph, name, inputs[0], options);
  };
}

Append read_group_norm(const Table& table, const ModelOptions&) {
  table.known({"groups", "eps", "affine"});
  const ops::GroupNormOptions options{.groups = table.integer("groups", required, from_one),
                                      .eps = read_eps(table),
                                      .affine = table.boolean("affine", true)};
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::group_norm_layer(graph, name, inputs[0], options);
  };
}

Append read_layer_norm(const Table& table, const ModelOptions& model) {
  const ops::LayerNormOptions options{
      .over = table.word("over", model.sequences ? "channels" : "sample", {.now = {"sample", "channels"}}),
      .eps = read_eps(table),
      .affine = table.boolean("affine", true)};
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::layer_norm_layer(graph, name, inputs[0], options);
  };
}

Append read_lrn(const Table& table, const ModelOptions&) {
  table.known({"size", "alpha", "beta", "k"});
  ops::LrnOptions options{.size = table.integer("size", required, from_one)};
  const auto read = [&](std::string_view key, double& value) {
    value = table.real(key, value);
    if (value < 0) table.reject(key, "a number of at least 0");
  };
  read("alpha", options.alpha);
  read("beta", options.beta);
  read("k", options.k);
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::lrn_layer(graph, name, inputs[0], options);
  };
}

Append read_softmax(const Table& table, const ModelOptions&) {
  return [op = table.text("op", required)](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::softmax_layer(graph, name, op, inputs[0]);
  };
}

Append read_function(const Table& table, const ModelOptions&) {
  return with(table, {});
}

Append read_scale(const Table& table, const ModelOptions&) {
  return with(table, {{"factor", table.real("factor", required)}});
}

Append read_shift(const Table& table, const ModelOptions&) {
  return with(table, {{"by", table.real("by", required)}});
}

Append read_pow(const Table& table, const ModelOptions&) {
  return with(table, {{"exponent", table.real("exponent", required)}});
}

Append read_clamp(const Table& table, const ModelOptions&) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  table.known({"min", "max"});
  const double low = table.has("min") ? table.real("min", required) : -infinite;
  const double high = table.has("max") ? table.real("max", required) : infinite;
  if (low == -infinite && high == infinite) table.reject("op", "a min, a max or both beside it");
  if (low > high) table.reject("min", "at most max");
  return with(table, {{"min", low}, {"max", high}});
}

Append read_neg(const Table&, const ModelOptions&) {
  return [](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::neg_layer(graph, name, inputs[0]);
  };
}

Append read_binary(const Table& table, const ModelOptions&) {
  return [op = table.text("op", required)](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::binary_layer(graph, name, op, inputs[0], inputs[1]);
  };
}

Append read_reduce(const Table& table, const ModelOptions&) {
  const ops::ReduceOptions options{.mean = table.text("op", required) == "mean",
                                   .dims = table.integers("dims", required, {.low = 1, .high = 3}),
                                   .keepdim = table.boolean("keepdim", false)};
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::reduce_layer(graph, name, inputs[0], options);
  };
}

} // namespace soybean::frontend
