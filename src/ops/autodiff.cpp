#include "ops/autodiff.hpp"

#include "base/error.hpp"
#include "ops/common.hpp"
#include "ops/microbatches.hpp"
#include "ops/recompute.hpp"
#include "ops/updates.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::ops {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::Role;
using graph::Tensor;
using graph::TensorId;

namespace {

bool is_frozen(const Graph& graph, const Tensor& parameter) {
  return std::any_of(parameter.consumers.begin(), parameter.consumers.end(), [&](NodeId n) {
    return graph.nodes[n].layer != graph::none && graph.layers[graph.nodes[n].layer].frozen;
  });
}

} // namespace

Backward::Backward(Graph& graph)
    : graph_(graph),
      terms_(graph.tensors.size()),
      wanted_(graph.tensors.size(), false),
      expected_(graph.tensors.size(), 0) {
  ensure(!graph.metrics.empty(), "a graph without a loss");
  for (const Node& node : graph.nodes) ensure(node.phase == Phase::forward, "a graph that has its backward already");
  find_wanted();
  count_terms();
}

void Backward::find_wanted() {
  for (std::size_t t = 0; t < wanted_.size(); ++t) {
    const Tensor& tensor = graph_.tensors[t];
    wanted_[t] = tensor.role == Role::parameter && !is_frozen(graph_, tensor);
  }
  if (std::find(wanted_.begin(), wanted_.end(), true) == wanted_.end())
    fail("model: layers, got frozen ones alone expected one that is trained. drop a `frozen`");
  for (const Node& node : graph_.nodes) {
    const bool fed = std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId t) { return wanted_[t]; });
    for (TensorId t : node.outputs) wanted_[t] = fed;
  }
}

void Backward::count_terms() {
  std::vector<bool> leads_to_loss(graph_.nodes.size(), false);
  leads_to_loss[graph_.tensors[graph_.metrics[0]].producer] = true;
  for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
    const Node& node = graph_.nodes[n];
    if (!leads_to_loss[n])
      fail("{}: result, got no path to the loss expected one. use it in a later layer or drop this one",
           where(graph_, node));
    for (TensorId t : node.inputs) {
      ++expected_[t];
      if (graph_.tensors[t].producer != graph::none) leads_to_loss[graph_.tensors[t].producer] = true;
    }
  }
}

TensorId Backward::gradient_of(TensorId tensor) {
  std::vector<TensorId>& terms = terms_[tensor];
  if (terms.empty()) return graph::none;
  if (terms.size() > 1) {
    const Tensor& primal = graph_.tensors[tensor];
    const Node& of = graph_.nodes[primal.producer != graph::none ? primal.producer : primal.consumers.front()];
    terms = append(of, {.name = primal.name + ".grad", .op = "add", .inputs = terms});
  }
  return terms.front();
}

bool Backward::wanted(TensorId tensor) const {
  return wanted_[tensor];
}

std::vector<TensorId> Backward::append(const Node& of, NewNode node) {
  node.phase = Phase::backward;
  node.layer = of.layer;
  return ops::append(graph_, std::move(node));
}

void Backward::contribute(TensorId tensor, TensorId gradient) {
  if (!wanted_[tensor]) return;
  ensure(gradient != graph::none && graph_.tensors[gradient].shape == graph_.tensors[tensor].shape,
         fmt::format("a term of the gradient of '{}' does not fit", graph_.tensors[tensor].name));
  terms_[tensor].push_back(gradient);
}

void Backward::contribute(const Node& of, TensorId tensor, NewNode node) {
  if (!wanted_[tensor]) return;
  node.name = graph_.tensors[tensor].name + ".grad";
  if (expected_[tensor] > 1) node.name += fmt::format(".{}", terms_[tensor].size() + 1);
  contribute(tensor, append(of, std::move(node)).front());
}

NodeId Backward::id_of(const Node& node) const {
  return graph_.tensors[node.outputs.front()].producer;
}

void link_next(Graph& graph, TensorId value, TensorId next) {
  graph.tensors[value].next = next;
  graph.tensors[next].previous = value;
}

void add_backward_and_update(Graph& graph, const Optimizer& optimizer) {
  if (graph::parameter_count(graph) == 0)
    fail("model: parameters, got none expected at least one. add a dense or conv2d layer");
  Updates updates(graph, optimizer);
  Backward backward(graph);
  std::vector<ParameterGradient> first_part; // of several; their totals come later
  const auto complete = [&](TensorId parameter, TensorId gradient) {
    if (graph.microbatches > 1)
      first_part.push_back({parameter, gradient});
    else
      updates.add(parameter, gradient);
  };
  std::vector<std::size_t> readers(graph.tensors.size()); // forward nodes whose backward is still to come
  for (std::size_t t = 0; t < readers.size(); ++t) readers[t] = graph.tensors[t].consumers.size();
  const std::size_t forward_nodes = graph.nodes.size();
  for (std::size_t n = 0; n < forward_nodes; ++n)
    if (const auto update = find(graph.nodes[n].op).update_state) update(graph, Node(graph.nodes[n]));
  for (std::size_t n = forward_nodes; n-- > 0;) {
    const Node node = graph.nodes[n]; // a copy: appending moves the nodes
    std::vector<TensorId> distinct;
    for (TensorId t : node.inputs)
      if (std::find(distinct.begin(), distinct.end(), t) == distinct.end()) distinct.push_back(t);
    if (std::none_of(distinct.begin(), distinct.end(), [&](TensorId t) { return backward.wanted(t); })) continue;
    const auto gradient = find(node.op).gradient;
    ensure(gradient != nullptr, fmt::format("operator '{}' has no gradient", node.op));
    gradient(backward, node);
    for (TensorId t : distinct)
      if (graph.tensors[t].role == Role::parameter && backward.wanted(t) && --readers[t] == 0)
        complete(t, backward.gradient_of(t));
  }
  recompute_activations(graph);
  repeat_parts(graph, first_part, [&](const ParameterGradient& g) { updates.add(g.parameter, g.gradient); });
  updates.finish();
}

} // namespace soybean::ops
