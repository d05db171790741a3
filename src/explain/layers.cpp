#include "explain/layers.hpp"

#include "explain/memory.hpp"
#include "plan/alternatives.hpp"
#include "plan/report.hpp"
#include "plan/words.hpp"
#include "simulate/report.hpp"

#include <fmt/format.h>

namespace soybean::explain {
namespace {

std::vector<std::int64_t> held_by_layer(const graph::Graph& graph, const Costed& costed) {
  std::vector<std::int64_t> held(graph.layers.size(), 0);
  for (const HeldBuffer& buffer : memory_course(graph, costed).at_peak)
    if (const int layer = plan::layer_of(graph, costed.program.buffers[buffer.buffer].tensor); layer != graph::none)
      held[layer] += buffer.bytes;
  return held;
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole)) : "-";
}

} // namespace

std::vector<LayerFigures> layer_figures(const Subject& subject, const Costed& costed) {
  const graph::Graph& graph = subject.graph;
  const std::vector<std::int64_t> bytes = plan::bytes_by_layer(graph, costed.plan), held = held_by_layer(graph, costed);
  const std::vector<plan::LayerSplits> splits = plan::layer_splits(graph, costed.plan);
  std::vector<LayerFigures> figures;
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer) {
    LayerFigures& row = figures.emplace_back();
    row.bytes = bytes[layer];
    row.held = held[layer];
    if (costed.step) {
      const simulate::LayerSeconds& seconds = costed.step->layers[layer];
      row.seconds = seconds.computing + seconds.packing + seconds.waiting;
    }
    const graph::NodeId main = plan::main_node(graph, static_cast<int>(layer));
    if (main == graph::none) continue;
    row.kind = plan::kind_of(graph, costed.plan, main);
    row.split = plan::split_text(graph, costed.plan, main);
    row.why = plan::reason(row.kind, splits[layer]);
  }
  return figures;
}

std::string layer_table(const Subject& subject, const Costed& costed) {
  const bool timed = costed.step.has_value();
  std::vector<plan::Row> rows = {{"layer", "parallel", "split", "because", "moved", "of all", "memory", "time"}};
  const std::vector<LayerFigures> figures = layer_figures(subject, costed);
  for (std::size_t layer = 0; layer < figures.size(); ++layer) {
    const LayerFigures& f = figures[layer];
    rows.push_back({subject.graph.layers[layer].name, f.kind, f.split, f.why, plan::bytes_text(f.bytes),
                    share_text(f.bytes, costed.plan.bytes), plan::bytes_text(f.held),
                    f.seconds ? plan::seconds_text(*f.seconds) : ""});
  }
  std::vector<bool> right = {false, false, false, false, true, true, true, true};
  if (!timed) {
    for (plan::Row& row : rows) row.pop_back();
    right.pop_back();
  }
  return plan::headline(subject.graph, costed.plan, subject.pinned) + plan::table(rows, right) +
         "  because: what the layer's tensors would move were it split otherwise and all else as it is\n"
         "  memory: of the fullest rank, at the moment it holds most\n";
}

std::string strategy_table(const Subject& subject, const std::vector<Costed>& plans) {
  std::vector<plan::Compared> all;
  all.reserve(plans.size());
  for (const Costed& costed : plans)
    all.push_back({.plan = costed.plan,
                   .peak_memory = costed.peak_memory(),
                   .seconds = costed.step ? std::optional(costed.step->seconds) : std::nullopt,
                   .bottleneck = bottleneck(subject, costed)});
  return plan::comparison(all, subject.pinned);
}

} // namespace soybean::explain
