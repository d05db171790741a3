#include "plan/model.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Role;
using graph::TensorId;

NodeId leader_of(const Graph& graph, NodeId node) {
  while (graph.nodes[node].twin != graph::none) node = graph.nodes[node].twin;
  return node;
}

void merge_twins(Model& model) {
  const Graph& graph = *model.graph;
  model.variable.assign(graph.nodes.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeId leader = leader_of(graph, static_cast<NodeId>(n));
    if (leader == static_cast<NodeId>(n)) {
      model.variable[n] = static_cast<int>(model.members.size());
      model.members.emplace_back();
      model.allowed.push_back(ops::allowed_choices(model.forms[n]));
    } else {
      model.variable[n] = model.variable[leader];
      const std::vector<ops::Choice> mine = ops::allowed_choices(model.forms[n]);
      std::erase_if(model.allowed[model.variable[n]], [&](ops::Choice choice) {
        if (std::find(mine.begin(), mine.end(), choice) == mine.end()) return true;
        ensure(ops::to_string(model.forms[n], choice) == ops::to_string(model.forms[leader], choice),
               fmt::format("node '{}' numbers its indices unlike its twin", graph.nodes[n].name));
        return false;
      });
    }
    model.members[model.variable[n]].push_back(static_cast<NodeId>(n));
  }
  for (std::size_t v = 0; v < model.members.size(); ++v)
    ensure(!model.allowed[v].empty(),
           fmt::format("node '{}' can not be split and not be replicated", graph.nodes[model.members[v][0]].name));
}

/// Notes which dims of `tensor` an operand's form splits.
void add_operand(Model& model, const ops::Form& form, const ops::OperandForm& dims, TensorId tensor) {
  const TensorId previous = model.graph->tensors[tensor].previous;
  const TensorId home = previous == graph::none ? tensor : previous;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].index < 0 || !form.indices[dims[d].index].splittable) continue;
    const int dim = static_cast<int>(d);
    model.entries[home].push_back(tiling::split(dim, dims[d].unit));
    model.entries[home].push_back(tiling::split(dim, model.graph->tensors[home].units[d]));
    if (form.indices[dims[d].index].batch) model.batch_dim[tensor] = dim;
  }
}

void collect_entries(Model& model) {
  const Graph& graph = *model.graph;
  model.entries.assign(graph.tensors.size(), {});
  model.batch_dim.assign(graph.tensors.size(), -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[n];
    const ops::Form& form = model.forms[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) add_operand(model, form, form.inputs[i], node.inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) add_operand(model, form, form.outputs[i], node.outputs[i]);
  }
  for (std::vector<tiling::Entry>& entries : model.entries) {
    entries.push_back(tiling::replicate());
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  }
}

} // namespace

Model make_model(const Graph& graph) {
  Model model;
  model.graph = &graph;
  for (const graph::Node& node : graph.nodes) model.forms.push_back(ops::form(graph, node));
  merge_twins(model);
  collect_entries(model);
  return model;
}

bool is_kept(const graph::Tensor& tensor) {
  return tensor.producer == graph::none && (tensor.role == Role::parameter || tensor.role == Role::state);
}

bool is_free_source(const graph::Tensor& tensor) {
  return tensor.producer == graph::none && !is_kept(tensor);
}

bool leaves_empty(const ops::Form& form, const tiling::Mesh& mesh, const Choices& choices) {
  if (form.may_idle) return false;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] < 0) continue;
    std::int64_t parts = 1;
    for (std::size_t k = 0; k < choices.size(); ++k)
      if (choices[k] == choices[i]) parts *= mesh.cuts[k];
    if (form.indices[choices[i]].count < parts) return true;
  }
  return false;
}

} // namespace soybean::plan
