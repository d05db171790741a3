#include "frontend/layers.hpp"

#include "base/error.hpp"

#include <array>
#include <utility>

namespace soybean::frontend {

namespace {

using config::Limits;
using config::required;
using config::Table;
using graph::Graph;
using graph::TensorId;
using Inputs = std::vector<TensorId>;

constexpr Limits from_zero{.low = 0};
constexpr Limits from_one{.low = 1};
constexpr ops::Pair ones{1, 1};
constexpr ops::Pair zeros{0, 0};

/// Key `padding` of a convolution: sizes, or "same", for a result of the image's size.
ops::Edges read_padding(const Table& table, const ops::Pair& kernel, const ops::Pair& stride,
                        const ops::Pair& dilation) {
  if (!table.is_text("padding")) return table.edges("padding", ops::Edges{}, from_zero);
  const std::string word = table.word("padding", required, {.now = {"same", "valid"}});
  if (word == "valid") return {};
  if (stride != ones) table.reject("padding", "sizes", "\"same\" is for a stride of 1");
  ops::Edges edges{};
  for (std::size_t d = 0; d < 2; ++d) { // of an odd number, the greater half comes last
    const std::int64_t total = dilation[d] * (kernel[d] - 1);
    edges[d] = total / 2;
    edges[d + 2] = total - total / 2;
  }
  return edges;
}

Append read_conv2d(const Table& table, const ModelOptions& model) {
  table.known({"channels", "kernel", "stride", "padding", "dilation", "groups", "bias", "init", "init_std"});
  ops::Conv2dOptions options{
      .channels = table.integer("channels", required, from_one),
      .kernel = table.pair("kernel", required, from_one),
      .stride = table.pair("stride", ones, from_one),
      .dilation = table.pair("dilation", ones, from_one),
      .groups = table.integer("groups", 1, from_one),
      .bias = table.boolean("bias", true) && model.bias,
      .init = read_init(table, model.init),
  };
  options.edges = read_padding(table, options.kernel, options.stride, options.dilation);
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::conv2d_layer(graph, name, inputs[0], options);
  };
}

Append read_conv_transpose2d(const Table& table, const ModelOptions& model) {
  table.known(
      {"channels", "kernel", "stride", "padding", "output_padding", "dilation", "groups", "bias", "init", "init_std"});
  const ops::ConvTranspose2dOptions options{
      .channels = table.integer("channels", required, from_one),
      .kernel = table.pair("kernel", required, from_one),
      .stride = table.pair("stride", ones, from_one),
      .padding = table.pair("padding", zeros, from_zero),
      .output_padding = table.pair("output_padding", zeros, from_zero),
      .dilation = table.pair("dilation", ones, from_one),
      .groups = table.integer("groups", 1, from_one),
      .bias = table.boolean("bias", true) && model.bias,
      .init = read_init(table, model.init),
  };
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::conv_transpose2d_layer(graph, name, inputs[0], options);
  };
}

Append read_dense(const Table& table, const ModelOptions& model) {
  table.known({"units", "bias", "init", "init_std", "tied"});
  ops::DenseOptions options{.bias = table.boolean("bias", true) && model.bias, .init = read_init(table, model.init)};
  if (table.has("tied")) {
    options.tied = table.text("tied", required);
    for (const char* key : {"lr_scale", "weight_decay", "frozen"})
      if (table.has(key)) table.reject(key, "none beside tied", "the layer that has the weight says how it is trained");
  }
  if (options.tied.empty() || table.has("units")) options.units = table.integer("units", required, from_one);
  return [options](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::dense_layer(graph, name, inputs[0], options);
  };
}

Append read_pointwise(const Table& table, const ModelOptions&) {
  return [op = table.text("op", required)](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::pointwise_layer(graph, name, op, inputs[0]);
  };
}

/// Reads a real number that must be at least 0.
double read_factor(const Table& table, std::string_view key, double fallback) {
  const double value = table.real(key, fallback);
  if (value < 0) table.reject(key, "a number of at least 0");
  return value;
}

Append read_leaky_relu(const Table& table, const ModelOptions&) {
  return [slope = read_factor(table, "slope", 0.01)](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::pointwise_layer(graph, name, "leaky_relu", inputs[0], {{"slope", slope}});
  };
}

Append read_elu(const Table& table, const ModelOptions&) {
  return [alpha = read_factor(table, "alpha", 1)](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::pointwise_layer(graph, name, "elu", inputs[0], {{"alpha", alpha}});
  };
}

Append read_gelu(const Table& table, const ModelOptions&) {
  const std::string kind = table.word("approximate", "none", {.now = {"none", "tanh"}});
  return [kind](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::pointwise_layer(graph, name, "gelu", inputs[0], {{"approximate", kind}});
  };
}

Append read_pool(const Table& table, const ModelOptions&) {
  const std::string op = table.text("op", required);
  table.known({"kernel", "stride", "padding", "ceil_mode"});
  ops::PoolOptions options{.kernel = table.pair("kernel", required, from_one)};
  options.stride = table.pair("stride", options.kernel, from_one);
  options.edges = table.edges("padding", ops::Edges{}, from_zero);
  options.ceil_mode = table.boolean("ceil_mode", false);
  if (op == "max_pool")
    options.dilation = table.pair("dilation", ones, from_one);
  else
    options.count_include_pad = table.boolean("count_include_pad", true);
  return [options, op](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::pool_layer(graph, name, op, inputs[0], options);
  };
}

Append read_global_avg_pool(const Table&, const ModelOptions&) {
  return [](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::global_avg_pool_layer(graph, name, inputs[0]);
  };
}

Append read_dropout(const Table& table, const ModelOptions& model) {
  const double rate = table.real("rate", required);
  if (rate < 0 || rate >= 1) table.reject("rate", "at least 0 and less than 1");
  return [rate, seed = model.seed](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::dropout_layer(graph, name, inputs[0], rate, seed);
  };
}

Append read_flatten(const Table&, const ModelOptions&) {
  return [](Graph& graph, const std::string& name, const Inputs& inputs) {
    return ops::flatten_layer(graph, name, inputs[0]);
  };
}

Append read_add(const Table&, const ModelOptions&) {
  return
      [](Graph& graph, const std::string& name, const Inputs& inputs) { return ops::add_layer(graph, name, inputs); };
}

struct NamedScheme {
  std::string_view name;
  ops::Scheme scheme;
};

constexpr std::array<NamedScheme, 5> schemes{{
    {"default", ops::Scheme::standard},
    {"kaiming_normal", ops::Scheme::kaiming_normal},
    {"kaiming_normal_fan_in", ops::Scheme::kaiming_normal_fan_in},
    {"xavier_uniform", ops::Scheme::xavier_uniform},
    {"normal", ops::Scheme::normal},
}};

} // namespace

const std::vector<LayerKind>& layer_kinds() {
  static const std::vector<LayerKind> kinds = {
      {.op = "conv2d", .activation = true, .read = read_conv2d},
      {.op = "conv_transpose2d", .activation = true, .read = read_conv_transpose2d},
      {.op = "dense", .activation = true, .read = read_dense},
      {.op = "embedding", .read = read_embedding},
      {.op = "positional_embedding", .read = read_positional_embedding},
      {.op = "rotary", .read = read_rotary},
      {.op = "attention", .most_inputs = 3, .read = read_attention},
      {.op = "scaled_dot_product_attention",
       .least_inputs = 3,
       .most_inputs = 3,
       .read = read_scaled_dot_product_attention},
      {.op = "relu", .read = read_pointwise},
      {.op = "relu6", .read = read_pointwise},
      {.op = "tanh", .read = read_pointwise},
      {.op = "sigmoid", .read = read_pointwise},
      {.op = "leaky_relu", .read = read_leaky_relu},
      {.op = "elu", .read = read_elu},
      {.op = "gelu", .read = read_gelu},
      {.op = "silu", .read = read_pointwise},
      {.op = "hard_swish", .read = read_pointwise},
      {.op = "batch_norm", .activation = true, .read = read_batch_norm},
      {.op = "group_norm", .activation = true, .read = read_group_norm},
      {.op = "layer_norm", .activation = true, .read = read_layer_norm},
      {.op = "rms_norm", .activation = true, .read = read_rms_norm},
      {.op = "lrn", .read = read_lrn},
      {.op = "max_pool", .read = read_pool},
      {.op = "avg_pool", .read = read_pool},
      {.op = "global_avg_pool", .read = read_global_avg_pool},
      {.op = "dropout", .read = read_dropout},
      {.op = "flatten", .read = read_flatten},
      {.op = "add", .least_inputs = 2, .most_inputs = any_number, .activation = true, .read = read_add},
      {.op = "mul", .least_inputs = 2, .most_inputs = 2, .activation = true, .read = read_binary},
      {.op = "sub", .least_inputs = 2, .most_inputs = 2, .activation = true, .read = read_binary},
      {.op = "div", .least_inputs = 2, .most_inputs = 2, .activation = true, .read = read_binary},
      {.op = "maximum", .least_inputs = 2, .most_inputs = 2, .activation = true, .read = read_binary},
      {.op = "minimum", .least_inputs = 2, .most_inputs = 2, .activation = true, .read = read_binary},
      {.op = "scale", .read = read_scale},
      {.op = "shift", .read = read_shift},
      {.op = "neg", .read = read_neg},
      {.op = "pow", .read = read_pow},
      {.op = "sqrt", .read = read_function},
      {.op = "exp", .read = read_function},
      {.op = "log", .read = read_function},
      {.op = "abs", .read = read_function},
      {.op = "clamp", .read = read_clamp},
      {.op = "mean", .read = read_reduce},
      {.op = "sum", .read = read_reduce},
      {.op = "softmax", .read = read_softmax},
      {.op = "log_softmax", .read = read_softmax},
      {.op = "identity", .read = read_identity},
      {.op = "concat", .least_inputs = 2, .most_inputs = any_number, .activation = true, .read = read_concat},
      {.op = "slice", .read = read_slice},
      {.op = "reshape", .read = read_reshape},
      {.op = "permute", .read = read_permute},
      {.op = "transpose", .read = read_transpose},
      {.op = "pad", .read = read_pad},
      {.op = "upsample", .read = read_upsample},
  };
  return kinds;
}

const std::vector<std::string>& later_layers() {
  static const std::vector<std::string> later = {"conv1d", "conv3d", "gru", "lstm", "matmul"};
  return later;
}

ops::Initial read_deviation(const Table& table, std::string_view key, const ops::Initial& init) {
  if (!table.has(key)) return init;
  const double deviation = table.real(key, required);
  if (deviation <= 0) table.reject(key, "a number above 0");
  if (init.scheme != ops::Scheme::normal) table.reject(key, "none without init = \"normal\"");
  return {ops::Scheme::normal, deviation};
}

ops::Initial read_init(const Table& table, const ops::Initial& fallback) {
  std::vector<std::string> names;
  names.reserve(std::size(schemes));
  for (const NamedScheme& s : schemes) names.emplace_back(s.name);
  if (!table.has("init")) return read_deviation(table, "init_std", fallback);
  const std::string name =
      table.word("init", required,
                 {.now = names, .later = {"kaiming_uniform", "xavier_normal", "orthogonal", "zeros", "constant"}});
  for (const NamedScheme& s : schemes)
    if (s.name == name) return read_deviation(table, "init_std", s.scheme);
  throw Bug("a scheme that is not in the table");
}

std::string read_activation(const Table& table) {
  if (!table.has("activation")) return "";
  std::vector<std::string> names;
  for (const auto& [name, defaults] : ops::activations()) names.push_back(name);
  return table.word("activation", required, {.now = names, .later = {"softmax"}});
}

} // namespace soybean::frontend
