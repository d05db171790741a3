#include "explain/timeline.hpp"

#include "plan/words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace soybean::explain {
namespace {

using program::Instruction;
using program::Kind;

constexpr double too_short = 1.0 / 2400; ///< of the step: bars below it are drawn together

std::string transfer_text(const graph::Graph& graph, const Costed& costed, const Instruction& instruction) {
  const graph::TensorId tensor = costed.program.buffers[instruction.inputs[0]].tensor;
  return fmt::format("{} of {}", to_string(instruction.step.kind), graph.tensors[tensor].name);
}

std::string kernel_text(const graph::Graph& graph, const Costed& costed, const Instruction& instruction) {
  if (instruction.kind != Kind::compute) return "packing for " + transfer_text(graph, costed, instruction);
  return fmt::format("{}: {}", graph.nodes[instruction.node].name, program::operators(graph, instruction));
}

int kind_of(const graph::Graph& graph, const Instruction& instruction) {
  constexpr int packing = 3;
  return instruction.kind == Kind::compute ? static_cast<int>(graph.nodes[instruction.node].phase) : packing;
}

/// Adds a bar, or lengthens the last one where both are short, of one kind and next to each other. `members`: how many
/// are in the last one.
void add_bar(std::vector<TimelineBar>& bars, TimelineBar bar, double shortest, const char* what, int& members) {
  TimelineBar* last = bars.empty() ? nullptr : &bars.back();
  const bool together = last != nullptr && last->kind == bar.kind && bar.begin - last->end < shortest / 4 &&
                        bar.end - bar.begin < shortest && (members > 1 || last->end - last->begin < shortest);
  if (!together || last->end - last->begin > 4 * shortest) {
    members = 1;
    bars.push_back(std::move(bar));
    return;
  }
  ++members;
  last->end = bar.end;
  last->what = fmt::format("{} {}", members, what);
}

} // namespace

Timeline make_timeline(const graph::Graph& graph, const Costed& costed, std::size_t longest) {
  const simulate::Step& step = predicted(costed.step);
  Timeline timeline;
  int kernels = 0, transfers = 0; // in the last bar of each
  for (const simulate::Interval& interval : step.timeline) {
    const Instruction& instruction = costed.program.instructions[interval.instruction];
    const std::string what =
        interval.network ? transfer_text(graph, costed, instruction) : kernel_text(graph, costed, instruction);
    const int layer = instruction.node == graph::none ? graph::none : graph.nodes[instruction.node].layer;
    timeline.longest.push_back(
        {what, layer == graph::none ? "" : graph.layers[layer].name, interval.end - interval.begin});
    if (interval.network)
      add_bar(timeline.transfers, {interval.begin, interval.end, what, 0}, step.seconds * too_short, "transfers",
              transfers);
    else
      add_bar(timeline.kernels, {interval.begin, interval.end, what, kind_of(graph, instruction)},
              step.seconds * too_short, "kernels", kernels);
  }
  std::stable_sort(timeline.longest.begin(), timeline.longest.end(),
                   [](const TimelineItem& a, const TimelineItem& b) { return a.seconds > b.seconds; });
  if (timeline.longest.size() > longest) timeline.longest.resize(longest);
  return timeline;
}

} // namespace soybean::explain
