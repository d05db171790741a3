#include "ops/norm_layers.hpp"

#include "base/error.hpp"
#include "ops/building.hpp"

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
  const TensorId variance =
      append(graph, {.name = name + ".variance", .op = "channel_variance", .inputs = {x, mean}, .layer = layer})
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
                        .layer = layer})
      .front();
}

} // namespace soybean::ops
