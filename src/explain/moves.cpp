#include "explain/moves.hpp"

#include "ops/operator.hpp"
#include "plan/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace soybean::explain {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;

std::int64_t bytes_of(const Graph& graph, const plan::Plan& plan, const Move& move) {
  const graph::Tensor& tensor = graph.tensors[move.tensor];
  return tiling::elements_moved(plan.mesh, {tensor.shape, tensor.units}, move.from, move.to) * size_of(tensor.dtype);
}

/// The first node that needs the tensor in a tiling.
NodeId first_to_need(const Graph& graph, const plan::Plan& plan, TensorId tensor, const tiling::Tiling& tiling) {
  for (const NodeId n : graph.tensors[tensor].consumers) {
    const graph::Node& node = graph.nodes[n];
    const ops::OperandTilings tilings =
        ops::operand_tilings(ops::form(graph, node), graph, node, plan.mesh, plan.choices[n]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] == tensor && tilings.inputs[i] == tiling) return n;
  }
  return graph::none;
}

/// What an exchange is called by what it does on the cuts it changes, and how many ranks they join.
std::pair<std::string, int> name_of_exchange(const plan::Plan& plan, const tiling::Step& step) {
  bool gathers = true, turns = true, halos = true;
  int ranks = 1;
  for (std::size_t cut = 0; cut < step.from.size(); ++cut) {
    if (step.from[cut] == step.to[cut]) continue;
    ranks *= plan.mesh.cuts[cut];
    gathers = gathers && step.to[cut].kind == tiling::Kind::replicate;
    halos = halos && step.to[cut].halo.reach != tiling::Reach::none && step.from[cut].kind == tiling::Kind::split &&
            step.from[cut].dim == step.to[cut].dim;
    turns = turns && step.from[cut].kind == tiling::Kind::split && step.to[cut].kind == tiling::Kind::split;
  }
  return {gathers ? "all_gather" : halos ? "halo" : turns ? "all_to_all" : "exchange", ranks};
}

int layer_of(const Graph& graph, NodeId node) {
  return node == graph::none ? graph::none : graph.nodes[node].layer;
}

void add_moves(const Graph& graph, const plan::Plan& plan, TensorId id, std::vector<Move>& moves) {
  const graph::Tensor& tensor = graph.tensors[id];
  const plan::TensorMoves all = plan::moves(graph, plan, id);
  const NodeId first = tensor.consumers.empty() ? graph::none : tensor.consumers[0];
  const NodeId maker = tensor.next == graph::none ? tensor.producer : graph.tensors[tensor.next].producer;
  const int home = layer_of(graph, tensor.producer == graph::none ? first : tensor.producer);
  const auto add = [&](Move move) {
    move.tensor = id;
    move.from_layer = home;
    move.bytes = bytes_of(graph, plan, move);
    if (move.bytes > 0) moves.push_back(std::move(move));
  };
  if (maker != graph::none)
    add({.from = all.produced,
         .to = plan.stored[id],
         .stores = true,
         .node = maker,
         .to_layer = layer_of(graph, first)});
  for (const tiling::Tiling& need : all.needed) {
    const NodeId user = first_to_need(graph, plan, id, need);
    add({.from = plan.stored[id], .to = need, .node = user, .to_layer = layer_of(graph, user)});
  }
}

} // namespace

std::vector<Move> all_moves(const Graph& graph, const plan::Plan& plan) {
  std::vector<Move> moves;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    if (const auto id = static_cast<TensorId>(t); plan::data_bytes(graph, plan, id) > 0)
      add_moves(graph, plan, id, moves);
  return moves;
}

std::string collectives(const Graph& graph, const plan::Plan& plan, const Move& move) {
  const graph::Tensor& tensor = graph.tensors[move.tensor];
  std::vector<std::pair<std::string, int>> words;
  for (const tiling::Step& step : tiling::path(plan.mesh, {tensor.shape, tensor.units}, move.from, move.to)) {
    if (step.elements == 0) continue;
    const auto [word, ranks] =
        step.cut < 0 ? name_of_exchange(plan, step)
                     : std::pair(std::string(to_string(step.kind)), tiling::parts(plan.mesh, step.cut, step.cuts));
    const auto same =
        std::find_if(words.begin(), words.end(), [&, &name = word](const auto& w) { return w.first == name; });
    if (same == words.end())
      words.emplace_back(word, ranks);
    else
      same->second *= ranks;
  }
  std::string text;
  for (const auto& [word, ranks] : words) text += fmt::format("{}{}/{}", text.empty() ? "" : ", ", word, ranks);
  return text;
}

} // namespace soybean::explain
