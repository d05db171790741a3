#include "base/error.hpp"
#include "graph/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace soybean::graph {
namespace {

void check_ids(const Graph& graph) {
  const auto tensor_exists = [&](TensorId t) { return t >= 0 && t < static_cast<TensorId>(graph.tensors.size()); };
  const auto node_or_none = [&](NodeId n) { return n >= none && n < static_cast<NodeId>(graph.nodes.size()); };
  for (const Node& node : graph.nodes) {
    for (TensorId t : node.inputs)
      ensure(tensor_exists(t), fmt::format("node '{}' has an input out of range", node.name));
    for (TensorId t : node.outputs)
      ensure(tensor_exists(t), fmt::format("node '{}' has an output out of range", node.name));
    ensure(!node.outputs.empty(), fmt::format("node '{}' has no outputs", node.name));
    ensure(node.layer >= none && node.layer < static_cast<std::int32_t>(graph.layers.size()),
           fmt::format("node '{}' has a layer out of range", node.name));
    ensure(node_or_none(node.twin), fmt::format("node '{}' has a twin out of range", node.name));
  }
  for (const Tensor& tensor : graph.tensors) {
    ensure(node_or_none(tensor.producer), fmt::format("tensor '{}' has a producer out of range", tensor.name));
    for (TensorId other : {tensor.next, tensor.previous, tensor.in_evaluation})
      ensure(other == none || tensor_exists(other),
             fmt::format("tensor '{}' has a next, previous or evaluated value out of range", tensor.name));
  }
  for (TensorId t : graph.metrics) ensure(tensor_exists(t), "a metric is out of range");
  ensure(graph.logits == none || tensor_exists(graph.logits), "the logits are out of range");
}

void check_names(const Graph& graph) {
  std::set<std::string_view> tensors, nodes;
  for (const Tensor& tensor : graph.tensors) {
    ensure(!tensor.name.empty(), "a tensor has no name");
    ensure(tensors.insert(tensor.name).second, fmt::format("two tensors are named '{}'", tensor.name));
  }
  for (const Node& node : graph.nodes) {
    ensure(!node.name.empty(), "a node has no name");
    ensure(nodes.insert(node.name).second, fmt::format("two nodes are named '{}'", node.name));
  }
}

/// Producers and consumers as the nodes say, and nothing used before it is produced.
void check_edges(const Graph& graph) {
  std::vector<NodeId> producers(graph.tensors.size(), none);
  std::vector<std::vector<NodeId>> consumers(graph.tensors.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (TensorId t : node.inputs) {
      ensure(graph.tensors[t].producer == none || graph.tensors[t].producer < static_cast<NodeId>(n),
             fmt::format("node '{}' uses '{}' before it is produced", node.name, graph.tensors[t].name));
      if (consumers[t].empty() || consumers[t].back() != static_cast<NodeId>(n))
        consumers[t].push_back(static_cast<NodeId>(n));
    }
    for (TensorId t : node.outputs) {
      ensure(producers[t] == none, fmt::format("tensor '{}' is produced twice", graph.tensors[t].name));
      producers[t] = static_cast<NodeId>(n);
    }
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    ensure(tensor.producer == producers[t], fmt::format("tensor '{}' has the wrong producer", tensor.name));
    ensure(tensor.consumers == consumers[t], fmt::format("tensor '{}' has the wrong consumers", tensor.name));
  }
}

void check_shape(const Tensor& tensor) {
  ensure(tensor.units.size() == tensor.shape.size(), fmt::format("tensor '{}' lacks units", tensor.name));
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    ensure(tensor.shape[d] >= 1, fmt::format("tensor '{}' has an empty dim", tensor.name));
    ensure(tensor.units[d] >= 1 && tensor.units[d] <= tensor.shape[d],
           fmt::format("tensor '{}' has a unit that does not fit its dim", tensor.name));
  }
  if (tensor.spatial == 1) return;
  const std::size_t rank = tensor.shape.size();
  const bool fits = tensor.spatial > 1 && (rank == 2   ? tensor.shape[1] % tensor.spatial == 0
                                           : rank == 4 ? tensor.shape[2] * tensor.shape[3] == tensor.spatial
                                                       : false);
  ensure(fits,
         fmt::format("tensor '{}' has spatial size {}, which does not fit its shape", tensor.name, tensor.spatial));
}

void check_dtype(const Graph& graph, const Tensor& tensor) {
  const bool scalars = tensor.role == Role::hyper || tensor.role == Role::control;
  const bool classes = tensor.role == Role::label || tensor.role == Role::partner_label ||
                       (tensor.role == Role::input && graph.vocabulary > 0);
  const DType expected = classes ? DType::i32 : scalars ? DType::f64 : graph.precision;
  ensure(tensor.dtype == expected,
         fmt::format("tensor '{}' is {}, not {}", tensor.name, to_string(tensor.dtype), to_string(expected)));
}

/// Sources have a source's role, produced tensors have the role their phase gives them.
void check_role(const Graph& graph, const Tensor& tensor) {
  const auto wrong = [&](std::string_view why) {
    return fmt::format("tensor '{}' of role {} {}", tensor.name, to_string(tensor.role), why);
  };
  if (tensor.producer == none) {
    ensure(tensor.role != Role::activation && tensor.role != Role::gradient && !is_control(tensor.role),
           wrong("has no producer"));
    return;
  }
  switch (graph.nodes[tensor.producer].phase) {
  case Phase::forward:
    ensure(tensor.role == Role::activation || tensor.role == Role::metric, wrong("is produced by a forward node"));
    return;
  case Phase::backward:
    ensure(tensor.role == Role::gradient || is_control(tensor.role), wrong("is produced by a backward node"));
    return;
  case Phase::update: // besides next values: norms, and directions to go in
    if (tensor.role == Role::gradient || tensor.role == Role::control) return;
    ensure(tensor.role == Role::parameter || tensor.role == Role::state, wrong("is produced by an update node"));
    ensure(tensor.previous != none, wrong("is nobody's next value"));
    return;
  }
}

bool alike(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape && a.units == b.units && a.dtype == b.dtype && a.role == b.role && a.spatial == b.spatial;
}

void check_next(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensors[id];
  if (tensor.previous != none)
    ensure(graph.tensors[tensor.previous].next == id,
           fmt::format("tensor '{}' is not the next value of its previous one", tensor.name));
  if (tensor.next == none) return;
  const Tensor& next = graph.tensors[tensor.next];
  ensure(next.previous == id, fmt::format("tensor '{}' is not the previous value of its next one", tensor.name));
  ensure(tensor.producer == none && (tensor.role == Role::parameter || tensor.role == Role::state),
         fmt::format("tensor '{}' can not have a next value", tensor.name));
  ensure(alike(tensor, next), fmt::format("tensor '{}' and its next value differ in more than name", tensor.name));
  ensure(next.producer != none && graph.nodes[next.producer].phase == Phase::update,
         fmt::format("the next value of '{}' is not produced by an update node", tensor.name));
  ensure(tensor.consumers.empty() || tensor.consumers.back() <= next.producer,
         fmt::format("tensor '{}' is used after its update", tensor.name));
}

/// What stands for a tensor in validation is a state like it.
void check_evaluated(const Graph& graph, const Tensor& tensor) {
  if (tensor.in_evaluation == none) return;
  const Tensor& state = graph.tensors[tensor.in_evaluation];
  const bool computed = tensor.producer != none && graph.nodes[tensor.producer].phase == Phase::forward;
  ensure((computed && tensor.role == Role::activation) || (tensor.producer == none && tensor.role == Role::parameter),
         fmt::format("tensor '{}' can not be another one in validation", tensor.name));
  ensure(state.producer == none && state.role == Role::state && state.shape == tensor.shape &&
             state.units == tensor.units && state.dtype == tensor.dtype && state.spatial == tensor.spatial,
         fmt::format("tensor '{}' can not be '{}' in validation", tensor.name, state.name));
}

void check_nodes(const Graph& graph) {
  bool forward_over = false;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const bool repeats = graph.microbatches > 1 && node.twin != none && graph.nodes[node.twin].op == node.op;
    ensure(node.phase != Phase::forward || !forward_over || repeats,
           fmt::format("forward node '{}' comes after the forward phase", node.name));
    forward_over = forward_over || node.phase != Phase::forward;
    if (node.twin == none) continue;
    ensure(node.twin < static_cast<NodeId>(n) && (graph.nodes[node.twin].phase == Phase::forward || repeats),
           fmt::format("the twin of node '{}' is not an earlier forward node", node.name));
  }
}

} // namespace

void verify(const Graph& graph) {
  check_ids(graph);
  check_names(graph);
  check_edges(graph);
  check_nodes(graph);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    check_shape(tensor);
    check_dtype(graph, tensor);
    check_role(graph, tensor);
    check_next(graph, static_cast<TensorId>(t));
    check_evaluated(graph, tensor);
  }
  for (TensorId t : graph.metrics)
    ensure(graph.tensors[t].role == Role::metric && graph.tensors[t].shape.empty(),
           fmt::format("metric '{}' is not a scalar of role metric", graph.tensors[t].name));
  for (TensorId t : graph.only_in_training)
    ensure(std::find(graph.metrics.begin(), graph.metrics.end(), t) != graph.metrics.end(),
           "what is only computed in training is no metric");
}

} // namespace soybean::graph
