#include "ops/norm_layers.hpp"

#include "base/error.hpp"
#include "ops/building.hpp"

#include <utility>

namespace soybean::ops {

using graph::Graph;
using graph::Init;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

TensorId batch_norm_layer(Graph& graph, const std::string& name, TensorId x, const BatchNormOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "batch_norm");
  const Tensor source = graph.tensors[x];
  if (source.shape.size() != 2 && source.shape.size() != 4)
    fail("{}: input, got {} dims ({}) expected 2 or 4", where(name, "batch_norm"), source.shape.size(),
         soybean::to_string(source.shape));
  const Tensor one{.shape = {source.shape[1]}, .units = {source.units[1]}};
  const auto running = [&](const std::string& what, graph::Initializer init) {
    Tensor state = one;
    state.name = name + "." + what;
    state.dtype = graph.precision;
    state.role = Role::state;
    state.init = init;
    return append_source(graph, state);
  };
  const auto trained = [&](const std::string& what, graph::Initializer init) {
    Tensor tensor = one;
    tensor.name = what;
    tensor.init = init;
    return parameter(graph, name, "batch_norm", tensor);
  };
  const TensorId mean =
      append(graph, {.name = name + ".mean", .op = "channel_mean", .inputs = {x}, .layer = layer}).front();
  const TensorId variance = append(graph, {.name = name + ".variance",
                                           .op = "channel_variance",
                                           .inputs = {x, mean},
                                           .layer = layer,
                                           .twin = graph.tensors[mean].producer})
                                .front();
  const TensorId running_mean = running("running_mean", {}), running_var = running("running_var", {Init::constant, 1});
  graph.tensors[mean].in_evaluation = running_mean;
  graph.tensors[variance].in_evaluation = running_var;
  std::vector<TensorId> inputs{x, mean, variance};
  if (options.affine) {
    inputs.push_back(trained("weight", {Init::constant, 1}));
    inputs.push_back(trained("bias", {}));
  }
  return append(graph, {.name = name,
                        .op = "batch_norm",
                        .attributes = {{"eps", options.eps}, {"momentum", options.momentum}},
                        .inputs = inputs,
                        .layer = layer,
                        .twin = graph.tensors[mean].producer})
      .front();
}

namespace {

/// The norm itself, with weight and bias of that shape where they are wanted.
TensorId append_norm(Graph& graph, NewNode node, const Shape& weights, bool affine) {
  const std::string op = node.op, name = node.name;
  const auto trained = [&](const std::string& what, graph::Initializer init) {
    Shape units(weights.size(), 1);
    if (weights.size() == 1) units[0] = graph.tensors[node.inputs[0]].units[1];
    return parameter(graph, name, op, {.name = what, .shape = weights, .units = units, .init = init});
  };
  if (affine) {
    node.inputs.push_back(trained("weight", {Init::constant, 1}));
    if (op != "rms_norm") node.inputs.push_back(trained("bias", {}));
  }
  return append(graph, std::move(node)).front();
}

/// Shape of x's samples. Throws Error unless they are images or features.
Shape sample_of(const Graph& graph, const std::string& name, std::string_view op, TensorId x) {
  const Shape& shape = graph.tensors[x].shape;
  if (shape.size() != 2 && shape.size() != 4)
    fail("{}: input, got {} dims ({}) expected 2 or 4", where(name, op), shape.size(), soybean::to_string(shape));
  return Shape(shape.begin() + 1, shape.end());
}

} // namespace

TensorId group_norm_layer(Graph& graph, const std::string& name, TensorId x, const GroupNormOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "group_norm");
  const Shape sample = sample_of(graph, name, "group_norm", x);
  return append_norm(graph,
                     {.name = name,
                      .op = "group_norm",
                      .attributes = {{"groups", options.groups}, {"eps", options.eps}},
                      .inputs = {x},
                      .layer = layer},
                     {sample[0]}, options.affine);
}

TensorId layer_norm_layer(Graph& graph, const std::string& name, TensorId x, const LayerNormOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "layer_norm");
  const Shape sample = sample_of(graph, name, "layer_norm", x);
  return append_norm(graph,
                     {.name = name,
                      .op = "layer_norm",
                      .attributes = {{"over", options.over}, {"eps", options.eps}},
                      .inputs = {x},
                      .layer = layer},
                     options.over == "channels" ? Shape{sample[0]} : sample, options.affine);
}

TensorId rms_norm_layer(Graph& graph, const std::string& name, TensorId x, const RmsNormOptions& options) {
  const std::int32_t layer = add_layer_entry(graph, name, "rms_norm");
  const Shape sample = sample_of(graph, name, "rms_norm", x);
  return append_norm(
      graph, {.name = name, .op = "rms_norm", .attributes = {{"eps", options.eps}}, .inputs = {x}, .layer = layer},
      {sample[0]}, options.affine);
}

TensorId lrn_layer(Graph& graph, const std::string& name, TensorId x, const LrnOptions& options) {
  return single(graph, name, "lrn",
                {{"size", options.size}, {"alpha", options.alpha}, {"beta", options.beta}, {"k", options.k}}, {x});
}

} // namespace soybean::ops
