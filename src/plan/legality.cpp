#include "plan/legality.hpp"

#include "ops/operator.hpp"
#include "plan/model.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Role;
using graph::TensorId;
using tiling::Tiling;

ops::OperandTilings tilings_of(const Graph& graph, const Plan& plan, NodeId n) {
  const graph::Node& node = graph.nodes[n];
  return ops::operand_tilings(ops::form(graph, node), graph, node, plan.mesh, plan.choices[n]);
}

/// The tiling in which the first consumer reads a tensor; replicated when it has none.
Tiling first_needed(const Graph& graph, const Plan& plan, TensorId id) {
  const std::vector<NodeId>& consumers = graph.tensors[id].consumers;
  if (consumers.empty()) return tiling::replicated(plan.mesh);
  const std::vector<TensorId>& inputs = graph.nodes[consumers[0]].inputs;
  return tilings_of(graph, plan, consumers[0]).inputs[std::find(inputs.begin(), inputs.end(), id) - inputs.begin()];
}

Tiling produced(const Graph& graph, const Plan& plan, TensorId id) {
  const NodeId producer = graph.tensors[id].producer;
  const std::vector<TensorId>& outputs = graph.nodes[producer].outputs;
  return tilings_of(graph, plan, producer).outputs[std::find(outputs.begin(), outputs.end(), id) - outputs.begin()];
}

bool is_legal(const Tiling& tiling, const Shape& shape, const tiling::Mesh& mesh) {
  if (tiling.size() != mesh.cuts.size()) return false;
  for (const tiling::Entry& entry : tiling) {
    if (entry.kind != tiling::Kind::split) continue;
    if (entry.dim < 0 || entry.dim >= static_cast<int>(shape.size())) return false;
    if (entry.unit < 1 || (entry.halo.reach == tiling::Reach::none && entry.unit > shape[entry.dim])) return false;
    for (const tiling::Entry& other : tiling)
      if (other.kind == tiling::Kind::split && other.dim == entry.dim && other.unit != entry.unit) return false;
  }
  return tiling::normalise(tiling, shape, mesh) == tiling;
}

/// The tiling a tensor must have that is not decided for itself.
Tiling derived(const Graph& graph, const Plan& plan, TensorId id) {
  const graph::Tensor& tensor = graph.tensors[id];
  if (tensor.previous != graph::none) return plan.stored[tensor.previous];
  if (tensor.role == Role::metric) return tiling::replicated(plan.mesh);
  return tensor.producer == graph::none ? first_needed(graph, plan, id) : produced(graph, plan, id);
}

std::ptrdiff_t uses(const Graph& graph, TensorId id) {
  std::ptrdiff_t count = 0;
  for (NodeId n : graph.tensors[id].consumers)
    count += std::count(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end(), id);
  return count;
}

} // namespace

bool is_decided(const Graph& graph, TensorId id) {
  const graph::Tensor& tensor = graph.tensors[id];
  if (tensor.previous != graph::none || tensor.role == Role::metric || is_free_source(tensor)) return false;
  return !tensor.consumers.empty() || tensor.producer == graph::none;
}

void derive_stored(const Graph& graph, Plan& plan) {
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (!is_decided(graph, id)) plan.stored[t] = derived(graph, plan, id);
  }
}

std::string objection_to_node(const Graph& graph, const Plan& plan, NodeId n) {
  const graph::Node& node = graph.nodes[n];
  const ops::Form form = ops::form(graph, node);
  const std::vector<ops::Choice> allowed = ops::allowed_choices(form);
  if (plan.choices[n].size() != plan.mesh.cuts.size()) return "has not one choice per cut";
  for (ops::Choice choice : plan.choices[n])
    if (std::find(allowed.begin(), allowed.end(), choice) == allowed.end())
      return "has a choice its form does not allow";
  if (node.twin != graph::none && plan.choices[n] != plan.choices[node.twin])
    return fmt::format("does not run where '{}' does", graph.nodes[node.twin].name);
  return "";
}

std::string objection_to_channels(const graph::Tensor& tensor, const Tiling& tiling, const tiling::Mesh& mesh) {
  if (tensor.spatial == 1 || tensor.shape.size() != 2) return "";
  std::int64_t unit = 1;
  for (const tiling::Entry& entry : tiling)
    if (entry.kind == tiling::Kind::split && entry.dim == 1) unit = entry.unit;
  const int parts = tiling::parts(tiling, mesh, 1);
  for (int j = 0; j + 1 < parts; ++j)
    if (tiling::block_range(tensor.shape[1], unit, parts, j).end % tensor.spatial != 0)
      return fmt::format("blocks of whole channels of {} positions: split(1/{})", tensor.spatial, tensor.spatial);
  return "";
}

std::string objection_to_tensor(const Graph& graph, const Plan& plan, TensorId id) {
  const graph::Tensor& tensor = graph.tensors[id];
  const Tiling& stored = plan.stored[id];
  if (!is_legal(stored, tensor.shape, plan.mesh))
    return "is stored in a tiling that does not fit its shape and the mesh";
  if (!objection_to_channels(tensor, stored, plan.mesh).empty()) return "is stored in blocks that cut channels";
  if (!is_decided(graph, id))
    return stored == derived(graph, plan, id) ? ""
                                              : fmt::format("is in tiling {}, not {} as it must be", to_string(stored),
                                                            to_string(derived(graph, plan, id)));
  if (tiling::has_halo(stored)) return "is stored with a halo";
  if (tiling::has_partial(stored)) {
    if (tensor.producer == graph::none || uses(graph, id) != 1)
      return "is stored as a partial sum, but has not one maker and one user";
    if (stored != produced(graph, plan, id))
      return fmt::format("is passed on as {}, but made as {}", to_string(stored), to_string(produced(graph, plan, id)));
    if (stored != first_needed(graph, plan, id))
      return fmt::format("is passed on as {}, but needed as {}", to_string(stored),
                         to_string(first_needed(graph, plan, id)));
    return "";
  }
  for (const Tiling& need : moves(graph, plan, id).needed)
    if (tiling::has_partial(need))
      return fmt::format("is needed as partial sum {}, but stored as {}", to_string(need), to_string(stored));
  return "";
}

} // namespace soybean::plan
