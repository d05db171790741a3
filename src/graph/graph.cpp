#include "graph/graph.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace soybean::graph {
namespace {

std::string names(const Graph& graph, const std::vector<TensorId>& tensors) {
  std::string text;
  for (TensorId t : tensors) text += (text.empty() ? "" : ", ") + graph.tensors[t].name;
  return text;
}

bool any_unit(const Shape& units) {
  for (std::int64_t unit : units)
    if (unit != 1) return true;
  return false;
}

std::string_view name_of(Init kind) {
  switch (kind) {
  case Init::zeros:
    return "zeros";
  case Init::uniform:
    return "uniform";
  case Init::normal:
    return "normal";
  case Init::constant:
    return "constant";
  }
  throw Bug("unknown Init");
}

std::string line(const Graph& graph, const Tensor& tensor) {
  std::string text = fmt::format("tensor {}: {} {} {}", tensor.name, to_string(tensor.role), to_string(tensor.dtype),
                                 soybean::to_string(tensor.shape));
  if (any_unit(tensor.units)) text += fmt::format(", units {}", soybean::to_string(tensor.units));
  if (tensor.spatial != 1) text += fmt::format(", spatial {}", tensor.spatial);
  if (tensor.init.kind != Init::zeros)
    text += fmt::format(", init {} {}", name_of(tensor.init.kind), tensor.init.scale);
  if (tensor.in_evaluation != none) text += fmt::format(", in evaluation {}", graph.tensors[tensor.in_evaluation].name);
  if (tensor.next != none) text += fmt::format(", next {}", graph.tensors[tensor.next].name);
  return text + "\n";
}

std::string line(const Graph& graph, const Node& node) {
  std::string text = fmt::format("node {}: {}({})", node.name, node.op, names(graph, node.inputs));
  for (const auto& [name, value] : node.attributes.items()) text += fmt::format(" {}={}", name, to_string(value));
  text += fmt::format(" -> {}; {}", names(graph, node.outputs), to_string(node.phase));
  if (node.layer != none) text += fmt::format(", layer {}", graph.layers[node.layer].name);
  if (node.twin != none) text += fmt::format(", twin {}", graph.nodes[node.twin].name);
  return text + "\n";
}

} // namespace

std::string_view to_string(Role role) {
  switch (role) {
  case Role::input:
    return "input";
  case Role::label:
    return "label";
  case Role::partner_label:
    return "partner_label";
  case Role::share:
    return "share";
  case Role::target:
    return "target";
  case Role::sample_weight:
    return "sample_weight";
  case Role::hyper:
    return "hyper";
  case Role::parameter:
    return "parameter";
  case Role::state:
    return "state";
  case Role::activation:
    return "activation";
  case Role::gradient:
    return "gradient";
  case Role::metric:
    return "metric";
  case Role::control:
    return "control";
  }
  throw Bug("unknown Role");
}

std::string_view to_string(Phase phase) {
  switch (phase) {
  case Phase::forward:
    return "forward";
  case Phase::backward:
    return "backward";
  case Phase::update:
    return "update";
  }
  throw Bug("unknown Phase");
}

std::string_view to_string(Recompute recompute) {
  switch (recompute) {
  case Recompute::none:
    return "none";
  case Recompute::cheap:
    return "cheap";
  case Recompute::segments:
    return "segments";
  }
  throw Bug("unknown Recompute");
}

std::string to_string(const Graph& graph) {
  std::string text = fmt::format("graph {} {}\n", graph.name, to_string(graph.precision));
  for (const Layer& layer : graph.layers) text += fmt::format("layer {}: {}\n", layer.name, layer.op);
  for (const Tensor& tensor : graph.tensors) text += line(graph, tensor);
  for (const Node& node : graph.nodes) text += line(graph, node);
  if (!graph.metrics.empty()) text += fmt::format("metrics {}\n", names(graph, graph.metrics));
  if (!graph.only_in_training.empty())
    text += fmt::format("only in training {}\n", names(graph, graph.only_in_training));
  if (graph.logits != none) text += fmt::format("logits {}\n", graph.tensors[graph.logits].name);
  return text;
}

TensorId operand(const Graph& graph, TensorId tensor, bool training) {
  const TensorId state = graph.tensors[tensor].in_evaluation;
  return training || state == none ? tensor : state;
}

std::vector<char> active_nodes(const Graph& graph, bool training) {
  if (training) return std::vector<char>(graph.nodes.size(), 1);
  std::vector<char> active(graph.nodes.size(), 0);
  const auto mark = [&](TensorId t) {
    if (graph.tensors[t].producer != none) active[graph.tensors[t].producer] = 1;
  };
  for (TensorId t : graph.metrics)
    if (graph.nodes[graph.tensors[t].producer].phase == Phase::forward &&
        std::find(graph.only_in_training.begin(), graph.only_in_training.end(), t) == graph.only_in_training.end())
      mark(t);
  for (std::size_t n = graph.nodes.size(); n-- > 0;)
    if (active[n])
      for (TensorId t : graph.nodes[n].inputs) mark(operand(graph, t, training));
  return active;
}

std::vector<TensorId> reported_metrics(const Graph& graph, bool training) {
  const std::vector<char> active = active_nodes(graph, training);
  std::vector<TensorId> reported;
  for (TensorId t : graph.metrics) {
    const NodeId producer = graph.tensors[t].producer;
    const bool of_later_part = graph.microbatches > 1 && graph.nodes[producer].twin != none;
    if (active[producer] && !of_later_part) reported.push_back(t);
  }
  return reported;
}

std::int64_t bytes(const Tensor& tensor) {
  return volume(tensor.shape) * size_of(tensor.dtype);
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Tensor& tensor : graph.tensors)
    if (tensor.role == Role::parameter && tensor.producer == none) count += volume(tensor.shape);
  return count;
}

TensorId find_tensor(const Graph& graph, std::string_view name) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].name == name) return static_cast<TensorId>(t);
  return none;
}

} // namespace soybean::graph
