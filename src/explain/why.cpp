#include "explain/why.hpp"

#include "base/error.hpp"
#include "config/table.hpp"
#include "explain/moves.hpp"
#include "ops/operator.hpp"
#include "plan/alternatives.hpp"
#include "plan/words.hpp"
#include "simulate/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace soybean::explain {
namespace {

using graph::Graph;

/// "fc6: dense, 256x9216 -> 256x4096, on 8 ranks (mesh 2x2x2); planned as model: features/8".
std::string head(const Graph& graph, const plan::Plan& plan, int layer, graph::NodeId main) {
  const graph::Node& node = graph.nodes[main];
  std::vector<std::string> inputs;
  inputs.reserve(node.inputs.size());
  for (const graph::TensorId t : node.inputs) inputs.push_back(soybean::to_string(graph.tensors[t].shape));
  const ops::Form form = ops::form(graph, node);
  return fmt::format("{}: {} ({} -> {}) of {} on {} ranks (mesh {}), strategy {}\n"
                     "  planned: {}, {}; the operator's loops: {}\n",
                     graph.layers[layer].name, node.op, fmt::join(inputs, ", "),
                     soybean::to_string(graph.tensors[node.outputs[0]].shape), graph.name, tiling::ranks(plan.mesh),
                     to_string(plan.mesh), plan.strategy, plan::kind_of(graph, plan, main),
                     plan::split_text(graph, plan, main), to_string(form));
}

std::string beside_text(const plan::Plan& other, const plan::Plan& planned) {
  const std::int64_t more = other.price() - planned.price();
  if (more == 0) return "as much";
  return (more > 0 ? "+ " : "- ") + plan::price_text(planned.objective, std::abs(more));
}

std::string ways_table(const Subject& subject, const Costed& costed, graph::NodeId main, const plan::Ways& ways) {
  const Graph& graph = subject.graph;
  std::vector<plan::Row> rows = {{"", "split", "parallel", "moved per step", "beside the plan", "of weights",
                                  "of activations", "memory", "step time"}};
  for (std::size_t w = 0; w < ways.found.size(); ++w) {
    const plan::Way& way = ways.found[w];
    const Costed other = w == ways.planned ? costed : cost(subject, way.plan);
    const plan::Traffic traffic = plan::traffic(graph, way.plan);
    rows.push_back({w == ways.planned ? ">" : "", plan::split_text(graph, way.plan, main),
                    plan::kind_of(graph, way.plan, main),
                    (way.exact || w == ways.planned ? "" : "<= ") + plan::bytes_text(way.plan.bytes),
                    w == ways.planned ? "planned" : beside_text(way.plan, costed.plan),
                    plan::bytes_text(traffic.weights), plan::bytes_text(traffic.activations),
                    plan::bytes_text(other.peak_memory()), other.step ? plan::seconds_text(other.step->seconds) : ""});
  }
  std::vector<bool> right = {false, false, false, true, true, true, true, true, true};
  if (subject.setting == nullptr) {
    for (plan::Row& row : rows) row.pop_back();
    right.pop_back();
  }
  return plan::table(rows, right);
}

std::string notes(const plan::Ways& ways) {
  std::string text;
  if (!ways.impossible.empty()) text += fmt::format("  impossible: {}\n", fmt::join(ways.impossible, ", "));
  text += ways.mixed ? "  mixes of two kinds are listed where they are cheaper than either alone\n"
                     : "  mixes of two kinds were not looked at: there are too many for this network and mesh\n";
  if (std::any_of(ways.found.begin(), ways.found.end(), [](const plan::Way& way) { return !way.exact; }))
    text += "  <= : the best plan found; cheaper ones are not ruled out\n";
  return text;
}

/// Where the layer's bytes go: every move of a tensor between its nodes, into or out of it, the largest first.
std::string moves_table(const Graph& graph, const plan::Plan& plan, int layer) {
  std::vector<Move> moves = all_moves(graph, plan);
  std::erase_if(moves, [&](const Move& move) { return move.from_layer != layer && move.to_layer != layer; });
  if (moves.empty()) return "\nnone of its tensors moves\n";
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.bytes > b.bytes; });
  std::vector<plan::Row> rows = {{"tensor", "from", "to", "for", "by", "moved"}};
  std::int64_t sum = 0;
  for (const Move& move : moves) {
    sum += move.bytes;
    rows.push_back({graph.tensors[move.tensor].name, plan::tiling_words(move.from, plan.mesh),
                    plan::tiling_words(move.to, plan.mesh), move.stores ? "keeping it" : graph.nodes[move.node].name,
                    collectives(graph, plan, move), plan::bytes_text(move.bytes)});
  }
  return fmt::format("\nwhere its bytes go: {} of the plan's {}\n", plan::bytes_text(sum),
                     plan::bytes_text(plan.bytes)) +
         plan::table(rows, {false, false, false, false, false, true});
}

} // namespace

int find_layer(const Graph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    if (graph.layers[layer].name == name) return static_cast<int>(layer);
    known.push_back(graph.layers[layer].name);
  }
  const std::string meant = config::nearest(name, known);
  fail("--why: name of a layer, got \"{}\" expected one of {}. {}", name, graph.name,
       meant.empty() ? "soybean_plan without --why lists them" : fmt::format("did you mean \"{}\"?", meant));
}

std::string why(const Subject& subject, const Costed& costed, int layer, const plan::Options& options) {
  const Graph& graph = subject.graph;
  const graph::NodeId main = plan::main_node(graph, layer);
  if (main == graph::none)
    fail("--why: layer, got {} expected one that computes something. it has no node of its own",
         graph.layers[layer].name);
  std::string text = head(graph, costed.plan, layer, main);
  if (costed.plan.mesh.cuts.empty()) return text + "\none rank: nothing can be split\n";
  const plan::Ways ways = plan::ways(graph, costed.plan, main, options);
  return text + "\nwhat its forward work could be, everything else planned anew for it\n" +
         ways_table(subject, costed, main, ways) + notes(ways) + moves_table(graph, costed.plan, layer);
}

} // namespace soybean::explain
