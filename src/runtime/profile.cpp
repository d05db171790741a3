#include "runtime/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace soybean::runtime {

std::string describe(const graph::Graph& graph, const program::Program& program, const program::Instruction& i) {
  switch (i.kind) {
  case program::Kind::compute:
    return fmt::format("{} {}", program::operators(graph, i), graph.nodes[i.node].name);
  case program::Kind::start:
    return fmt::format("{} {}", to_string(i.step.kind), program.buffers[i.inputs[0]].name);
  case program::Kind::wait:
    return fmt::format("wait t{}", i.token);
  case program::Kind::slice:
    return "slice " + program.buffers[i.inputs[0]].name;
  case program::Kind::free:
    return "free";
  }
  return "?";
}

std::string report(const graph::Graph& graph, const program::Program& program, const Profile& profile, int rows) {
  std::vector<std::size_t> order(profile.instructions.size());
  std::iota(order.begin(), order.end(), 0);
  const auto seconds = [&](std::size_t i) {
    return profile.instructions[i].computing_seconds + profile.instructions[i].waiting_seconds;
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return seconds(a) > seconds(b); });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(rows, 0))));
  const double steps = static_cast<double>(std::max<std::int64_t>(profile.steps, 1));
  std::string text = fmt::format("{:>12} {:>12} {:>14}  what\n", "computing ms", "waiting ms", "bytes");
  for (std::size_t i : order) {
    const Work& work = profile.instructions[i];
    text += fmt::format("{:>12.3f} {:>12.3f} {:>14.0f}  {}\n", work.computing_seconds / steps * 1e3,
                        work.waiting_seconds / steps * 1e3, static_cast<double>(work.received_bytes) / steps,
                        describe(graph, program, program.instructions[i]));
  }
  return text;
}

} // namespace soybean::runtime
