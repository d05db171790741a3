#include "plan/step_time.hpp"

#include "plan/classes.hpp"
#include "tiling/redistribution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace soybean::plan {
namespace {

using tiling::Tiling;

constexpr double per_second = 1e9;

constexpr double longest = 1e4; ///< seconds of a kernel or move; longer ones count as this, so that sums hold

std::int64_t nanoseconds(double seconds) {
  return std::llround(per_second * std::min(seconds, longest));
}

/// The level of links that a message along a cut takes: how many levels' groups it leaves.
int level_of(const machine::Setting& setting, std::size_t cut) {
  int level = 0;
  for (std::size_t l = 1; l < setting.levels.size(); ++l)
    if (static_cast<int>(cut) < setting.levels[l].cuts) level = static_cast<int>(l);
  return level;
}

Tiling leading(const Tiling& tiling, const tiling::Mesh& mesh) {
  return {tiling.begin(), tiling.begin() + static_cast<std::ptrdiff_t>(mesh.cuts.size())};
}

} // namespace

std::int64_t computing_time(const machine::Setting& setting, const Model& model, int variable, const Choices& choices) {
  std::int64_t sum = 0;
  for (graph::NodeId n : model.members[variable])
    sum += nanoseconds(machine::node_seconds(setting, *model.graph, model.graph->nodes[n], model.forms[n], choices));
  return sum;
}

std::int64_t moving_time(const machine::Setting& setting, const graph::Tensor& tensor, const Tiling& from,
                         const Tiling& to) {
  if (from == to) return 0;
  const machine::StepSeconds seconds = machine::move_seconds(setting, tensor, from, to);
  return nanoseconds(seconds.network + seconds.local);
}

std::int64_t step_time(const machine::Setting& setting, const Model& model, const Plan& plan) {
  const graph::Graph& graph = *model.graph;
  std::int64_t sum = 0;
  for (std::size_t v = 0; v < model.members.size(); ++v)
    sum += computing_time(setting, model, static_cast<int>(v), plan.choices[model.members[v][0]]);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    if (is_free_source(tensor) || tensor.previous != graph::none) continue;
    const TensorMoves moves = plan::moves(graph, plan, static_cast<graph::TensorId>(t));
    if (tensor.role == graph::Role::metric) {
      sum += moving_time(setting, tensor, moves.produced, tiling::replicated(plan.mesh));
      continue;
    }
    if (!moves.stored) continue;
    const bool produced = tensor.producer != graph::none || tensor.next != graph::none;
    if (produced) sum += moving_time(setting, tensor, moves.produced, plan.stored[t]);
    for (const Tiling& need : moves.needed) sum += moving_time(setting, tensor, plan.stored[t], need);
  }
  return sum;
}

std::vector<int> alike_cuts(const machine::Setting& setting) {
  std::map<std::pair<int, int>, int> numbers;
  std::vector<int> alike;
  alike.reserve(setting.mesh.cuts.size());
  for (std::size_t cut = 0; cut < setting.mesh.cuts.size(); ++cut)
    alike.push_back(numbers.try_emplace({setting.mesh.cuts[cut], level_of(setting, cut)}, alike.size()).first->second);
  return alike;
}

LeastTime::LeastTime(const machine::Setting& setting) : setting_(setting) {
  for (std::size_t level = 0; level < setting.levels.size(); ++level) {
    const int cuts = level == 0 ? static_cast<int>(setting.mesh.cuts.size()) : setting.levels[level].cuts;
    if (cuts == 0) break;
    // An exchange uses the links of all levels at once, a ring those that its cut crosses.
    double rate = 0, latency = std::numeric_limits<double>::max();
    for (std::size_t l = level; l < setting.levels.size(); ++l) {
      rate += setting.machine.links[l].bandwidth / setting.levels[l].sharers;
      latency = std::min(latency, setting.machine.links[l].latency);
    }
    double seconds = 1 / rate;
    const int all = static_cast<int>(setting.mesh.cuts.size());
    for (int cut = 0; cut < cuts; ++cut)
      for (int count = 1; cut + count <= all; ++count) {
        const machine::Setting::Ring& ring = setting.ring(cut, count);
        // One that goes on within a group carries so many times what has to cross.
        const int within = cut + count > cuts ? tiling::parts(setting.mesh, cuts, cut + count - cuts) : 1;
        seconds = std::min(seconds, within * ring.seconds_per_byte);
        latency = std::min(latency, ring.latency);
      }
    crossings_.push_back({tiling::prefix(setting.mesh, cuts), latency, seconds / tiling::ranks(setting.mesh)});
  }
}

std::int64_t LeastTime::moving(const graph::Tensor& tensor, const Tiling& from, const Tiling& to) const {
  if (from == to) return 0;
  double least = 0;
  for (const Crossing& crossing : crossings_) {
    const std::int64_t elements =
        least_moved(crossing.mesh, tensor.shape, leading(from, crossing.mesh), leading(to, crossing.mesh));
    if (elements == 0) continue;
    const auto bytes = static_cast<double>(elements * size_of(tensor.dtype));
    least = std::max(least, crossing.latency + bytes * crossing.seconds_per_byte);
  }
  if (least == 0) { // a slice, that is a kernel; or else some message
    least = machine::kernel_seconds(setting_, "", {});
    for (const Crossing& crossing : crossings_) least = std::min(least, crossing.latency);
  }
  return static_cast<std::int64_t>(per_second * std::min(least, longest) * (1 - 1e-9)); // rounded down
}

} // namespace soybean::plan
