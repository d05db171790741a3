#include "ops/operator.hpp"

#include "base/error.hpp"
#include "ops/common.hpp"

#include <fmt/format.h>

namespace soybean::ops {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Tensor;
using graph::TensorId;

void expect_new_name(const Graph& graph, std::string_view where, std::string_view name) {
  if (graph::find_tensor(graph, name) != graph::none)
    fail("{}: name, got '{}', which is in use, expected a new one. rename the layer", where, name);
}

/// What the node's operator says of its results, with units filled in.
std::vector<Result> infer(const Graph& graph, const Node& node) {
  std::vector<Result> results = find(node.op).infer(graph, node);
  for (Result& result : results) {
    expect_size(where(graph, node), "result", result.shape);
    if (result.units.empty()) result.units.assign(result.shape.size(), 1);
  }
  return results;
}

bool fits(const Tensor& tensor, const Result& result) {
  return tensor.shape == result.shape && tensor.units == result.units && tensor.dtype == result.dtype &&
         tensor.role == result.role && tensor.spatial == result.spatial;
}

} // namespace

std::vector<TensorId> append(Graph& graph, NewNode given) {
  Node node{.name = std::move(given.name),
            .op = std::move(given.op),
            .attributes = std::move(given.attributes),
            .inputs = std::move(given.inputs),
            .phase = given.phase,
            .layer = given.layer,
            .twin = given.twin};
  const std::vector<Result> results = infer(graph, node);
  for (const Result& result : results) expect_new_name(graph, where(graph, node), node.name + result.suffix);
  const NodeId id = static_cast<NodeId>(graph.nodes.size());
  for (const Result& result : results) {
    node.outputs.push_back(static_cast<TensorId>(graph.tensors.size()));
    graph.tensors.push_back({.name = node.name + result.suffix,
                             .shape = result.shape,
                             .units = result.units,
                             .dtype = result.dtype,
                             .role = result.role,
                             .spatial = result.spatial,
                             .producer = id});
  }
  for (TensorId t : node.inputs) {
    std::vector<NodeId>& consumers = graph.tensors[t].consumers;
    if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
  }
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().outputs;
}

TensorId append_source(Graph& graph, Tensor tensor) {
  const std::string where = fmt::format("tensor '{}'", tensor.name);
  expect_new_name(graph, where, tensor.name);
  expect_size(where, to_string(tensor.role), tensor.shape);
  if (tensor.units.empty()) tensor.units.assign(tensor.shape.size(), 1);
  ensure(tensor.producer == graph::none && tensor.consumers.empty(), "a source with producer or consumers");
  graph.tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(graph.tensors.size()) - 1;
}

double flops(const Graph& graph, graph::Phase phase) {
  double sum = 0;
  for (const Node& node : graph.nodes)
    if (node.phase == phase) sum += flops(graph, node);
  return sum;
}

void verify(const Graph& graph) {
  graph::verify(graph);
  for (const Node& node : graph.nodes) {
    const std::vector<Result> results = infer(graph, node);
    ensure(results.size() == node.outputs.size(), fmt::format("node '{}' has the wrong number of results", node.name));
    for (std::size_t i = 0; i < results.size(); ++i)
      ensure(fits(output(graph, node, i), results[i]),
             fmt::format("tensor '{}' is not what its operator infers", output(graph, node, i).name));
    const Form form = ops::form(graph, node);
    for (std::size_t i = 0; i < form.inputs.size(); ++i)
      for (std::size_t d = 0; d < form.inputs[i].size(); ++d)
        ensure(form.inputs[i][d].index < 0 || form.inputs[i][d].unit <= input(graph, node, i).shape[d],
               fmt::format("the form of node '{}' does not fit its inputs", node.name));
  }
}

} // namespace soybean::ops
