#include "explain/costed.hpp"

#include "base/error.hpp"
#include "plan/words.hpp"
#include "program/staging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace soybean::explain {
namespace {

using Share = std::pair<std::string, double>;

std::string largest(const std::vector<Share>& shares, double whole) {
  const auto most = std::max_element(shares.begin(), shares.end(),
                                     [](const Share& a, const Share& b) { return a.second < b.second; });
  if (most == shares.end() || most->second <= 0 || whole <= 0) return "-";
  return fmt::format("{} {:.0f} %", most->first, 100 * most->second / whole);
}

/// Seconds the network is busy for messages whose outermost link is of each level.
std::vector<double> transfers_by_level(const Subject& subject, const program::Program& program) {
  std::vector<double> seconds(subject.setting->levels.size(), 0);
  for (const program::Instruction& instruction : program.instructions) {
    if (instruction.kind != program::Kind::start) continue;
    const graph::Tensor& tensor = subject.graph.tensors[program.buffers[instruction.inputs[0]].tensor];
    seconds[level_crossed(*subject.setting, instruction.step)] +=
        machine::step_seconds(*subject.setting, tensor, instruction.step).network;
  }
  return seconds;
}

std::vector<Share> shares_of_time(const Subject& subject, const Costed& costed) {
  const simulate::Step& step = predicted(costed.step);
  std::vector<Share> shares;
  shares.reserve(subject.graph.layers.size());
  for (std::size_t layer = 0; layer < subject.graph.layers.size(); ++layer)
    shares.emplace_back(subject.graph.layers[layer].name, step.layers[layer].computing + step.layers[layer].packing);
  if (step.transferring <= 0) return shares;
  const std::vector<double> seconds = transfers_by_level(subject, costed.program);
  for (std::size_t level = 0; level < seconds.size(); ++level)
    shares.emplace_back("waiting for " + subject.setting->machine.links[level].name,
                        step.waiting * seconds[level] / step.transferring);
  return shares;
}

} // namespace

Costed cost(const Subject& subject, plan::Plan plan) {
  Costed costed{.plan = std::move(plan), .program = {}, .layout = {}, .step = {}};
  costed.program = program::lower(subject.graph, costed.plan, program::Mode::train);
  program::run_passes(subject.graph, costed.program);
  // The last block of a dim is its largest, so the last rank is the fullest.
  const int fullest = tiling::ranks(costed.plan.mesh) - 1;
  costed.layout = program::assign_memory(subject.graph, costed.program, fullest,
                                         program::staging(subject.graph, costed.program, fullest));
  if (subject.setting != nullptr)
    costed.step = simulate::predict(*subject.setting, subject.graph, costed.plan, costed.program);
  return costed;
}

const simulate::Step& predicted(const std::optional<simulate::Step>& step) {
  if (!step) throw Bug("a step's time is asked for without a machine");
  return *step;
}

std::string bottleneck(const Subject& subject, const Costed& costed) {
  if (costed.step) return largest(shares_of_time(subject, costed), costed.step->seconds);
  const std::vector<std::int64_t> bytes = plan::bytes_by_layer(subject.graph, costed.plan);
  std::vector<Share> shares;
  shares.reserve(bytes.size());
  for (std::size_t layer = 0; layer < bytes.size(); ++layer)
    shares.emplace_back(subject.graph.layers[layer].name, static_cast<double>(bytes[layer]));
  return largest(shares, static_cast<double>(costed.plan.bytes));
}

std::size_t level_crossed(const machine::Setting& setting, const tiling::Step& step) {
  int cut = step.cut;
  if (cut < 0) // an exchange: ranks differ along the cuts on which it changes anything
    for (cut = 0; cut + 1 < static_cast<int>(step.from.size()) && step.from[cut] == step.to[cut];) ++cut;
  std::size_t level = 0;
  while (level + 1 < setting.levels.size() && cut < setting.levels[level + 1].cuts) ++level;
  return level;
}

} // namespace soybean::explain
