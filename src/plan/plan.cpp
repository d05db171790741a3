#include "plan/plan.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"
#include "plan/legality.hpp"
#include "plan/model.hpp"
#include "plan/move_costs.hpp"
#include "tiling/redistribution.hpp"

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

/// moves() from operand tilings known already: `tilings` gives those of a node.
template<class TilingsOf>
TensorMoves find_moves(const Graph& graph, const Plan& plan, TensorId id, TilingsOf&& tilings) {
  const graph::Tensor& tensor = graph.tensors[id];
  TensorMoves moves;
  const TensorId made = tensor.next == graph::none ? id : tensor.next;
  if (const NodeId producer = graph.tensors[made].producer; producer != graph::none) {
    const std::vector<TensorId>& outputs = graph.nodes[producer].outputs;
    moves.produced = tilings(producer).outputs[std::find(outputs.begin(), outputs.end(), made) - outputs.begin()];
  }
  moves.stored = tensor.producer == graph::none || tensor.role == Role::metric || tensor.previous != graph::none ||
                 (!tensor.consumers.empty() && !tiling::has_partial(plan.stored[id]));
  for (NodeId n : tensor.consumers)
    for (std::size_t i = 0; i < graph.nodes[n].inputs.size(); ++i) {
      if (graph.nodes[n].inputs[i] != id) continue;
      const Tiling need = tilings(n).inputs[i];
      if (need != plan.stored[id] && std::find(moves.needed.begin(), moves.needed.end(), need) == moves.needed.end())
        moves.needed.push_back(need);
    }
  return moves;
}

std::int64_t moved_bytes(const Graph& graph, const Plan& plan, TensorId id, const TensorMoves& moves) {
  const graph::Tensor& tensor = graph.tensors[id];
  if (!moves.stored || is_free_source(tensor) || tensor.previous != graph::none) return 0;
  const tiling::Moved moved{tensor.shape, tensor.units};
  const bool produced = tensor.producer != graph::none || tensor.next != graph::none;
  std::int64_t elements =
      produced ? tiling::elements_moved(plan.mesh, moved, moves.produced, plan.stored[id]) : std::int64_t{0};
  for (const Tiling& need : moves.needed) elements += tiling::elements_moved(plan.mesh, moved, plan.stored[id], need);
  return elements * size_of(tensor.dtype);
}

/// Stored and copied bytes of the fullest rank. A next value lives where the old one did; metrics are nothing.
std::int64_t held_bytes(const Graph& graph, const Plan& plan, TensorId id, const TensorMoves& moves) {
  const graph::Tensor& tensor = graph.tensors[id];
  if (tensor.previous != graph::none || tensor.role == Role::metric) return 0;
  if (tensor.consumers.empty() && tensor.next == graph::none) return 0;
  std::int64_t bytes = largest_block_bytes(tensor, plan.stored[id], plan.mesh);
  for (const Tiling& need : moves.needed) bytes += largest_block_bytes(tensor, need, plan.mesh);
  return bytes;
}

void require(bool condition, const Graph& graph, const std::string& what) {
  if (!condition) ensure(false, fmt::format("plan of {}: {}", graph.name, what));
}

} // namespace

TensorMoves moves(const Graph& graph, const Plan& plan, TensorId tensor) {
  return find_moves(graph, plan, tensor, [&](NodeId n) { return tilings_of(graph, plan, n); });
}

std::int64_t cost_bytes(const Graph& graph, const Plan& plan, TensorId tensor) {
  return moved_bytes(graph, plan, tensor, moves(graph, plan, tensor));
}

void evaluate(const Graph& graph, Plan& plan) {
  std::vector<ops::OperandTilings> tilings;
  tilings.reserve(graph.nodes.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    tilings.push_back(tilings_of(graph, plan, static_cast<NodeId>(n)));
  plan.tensor_bytes.clear();
  plan.bytes = plan.control_bytes = plan.held_bytes = 0;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    const TensorMoves moves = find_moves(
        graph, plan, id, [&](NodeId n) -> const auto& { return tilings[n]; });
    plan.tensor_bytes.push_back(moved_bytes(graph, plan, id, moves));
    (graph::is_control(graph.tensors[t].role) ? plan.control_bytes : plan.bytes) += plan.tensor_bytes.back();
    plan.held_bytes += held_bytes(graph, plan, id, moves);
  }
}

void verify(const Graph& graph, const Plan& plan) {
  require(plan.choices.size() == graph.nodes.size(), graph, "not one choice per node");
  require(plan.stored.size() == graph.tensors.size(), graph, "not one stored tiling per tensor");
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::string objection = objection_to_node(graph, plan, static_cast<NodeId>(n));
    require(objection.empty(), graph, fmt::format("node '{}' {}", graph.nodes[n].name, objection));
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const std::string objection = objection_to_tensor(graph, plan, static_cast<TensorId>(t));
    require(objection.empty(), graph, fmt::format("tensor '{}' {}", graph.tensors[t].name, objection));
  }
  Plan again = plan;
  evaluate(graph, again);
  require(again.tensor_bytes == plan.tensor_bytes, graph, "bytes of tensors do not follow from tilings");
  require(again.bytes == plan.bytes && again.control_bytes == plan.control_bytes, graph, "bytes do not add up");
  require(again.held_bytes == plan.held_bytes, graph, "held bytes do not add up");
}

std::string to_string(const Graph& graph, const Plan& plan) {
  std::string text =
      fmt::format("plan {} mesh {} bytes {} control {} held {} {}\n", plan.strategy, tiling::to_string(plan.mesh),
                  plan.bytes, plan.control_bytes, plan.held_bytes, to_string(plan.status));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ops::Form form = ops::form(graph, graph.nodes[n]);
    text += fmt::format("node {}:", graph.nodes[n].name);
    for (ops::Choice choice : plan.choices[n]) text += " " + ops::to_string(form, choice);
    text += '\n';
  }
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    text += fmt::format("tensor {}: {} bytes {}\n", graph.tensors[t].name, tiling::to_string(plan.stored[t]),
                        plan.tensor_bytes[t]);
  return text;
}

std::string_view to_string(Status status) {
  switch (status) {
  case Status::optimal:
    return "optimal";
  case Status::bounded:
    return "bounded";
  case Status::named:
    break;
  }
  return "named";
}

} // namespace soybean::plan
