#include "explain/memory.hpp"

#include <algorithm>
#include <numeric>

namespace soybean::explain {
namespace {

using graph::Role;
using program::Life;

/// Whether a node of the backward phase does again what one of the forward phase did.
bool runs_again(const graph::Graph& graph, graph::NodeId node) {
  const std::string& op = graph.nodes[node].op;
  while (graph.nodes[node].twin != graph::none) node = graph.nodes[node].twin;
  return graph.nodes[node].phase == graph::Phase::forward && graph.nodes[node].op == op;
}

Held held_as(const graph::Graph& graph, const graph::Tensor& tensor) {
  switch (tensor.role) {
  case Role::parameter:
    return Held::weights;
  case Role::state:
    return Held::state;
  case Role::activation:
    return Held::activations;
  case Role::gradient:
    return runs_again(graph, tensor.producer) ? Held::activations : Held::gradients;
  default:
    return graph::comes_with_samples(tensor.role) ? Held::inputs : Held::others;
  }
}

/// Memory that is in use while instructions `begin` to `end` run, `end` not included.
struct Use {
  program::BufferId buffer;
  std::size_t begin, end;
  std::int64_t bytes;
};

std::vector<Use> uses(const graph::Graph& graph, const Costed& costed) {
  const program::Program& program = costed.program;
  const std::size_t count = program.instructions.size();
  std::vector<Use> all;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const program::Buffer& buffer = program.buffers[b];
    if (buffer.life == Life::transient || buffer.alias >= 0) continue;
    const std::int64_t bytes = volume(costed.layout.boxes[b]) * size_of(graph.tensors[buffer.tensor].dtype);
    all.push_back({static_cast<program::BufferId>(b), 0, count, bytes});
  }
  for (const program::Lifetime& life : program::lifetimes(graph, program, costed.layout))
    all.push_back({life.buffer, static_cast<std::size_t>(life.begin),
                   std::min(count, static_cast<std::size_t>(life.end) + 1), life.bytes});
  return all;
}

} // namespace

std::string_view to_string(Held kind) {
  constexpr std::array<std::string_view, held_kinds> names = {
      "weights", "optimizer and statistics", "inputs", "activations", "gradients", "others"};
  return names[static_cast<std::size_t>(kind)];
}

std::int64_t total(const HeldBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

MemoryCourse memory_course(const graph::Graph& graph, const Costed& costed) {
  const std::vector<Use> all = uses(graph, costed);
  MemoryCourse course;
  course.bytes.resize(costed.program.instructions.size());
  for (const Use& use : all) { // what begins, and what ends
    const auto kind =
        static_cast<std::size_t>(held_as(graph, graph.tensors[costed.program.buffers[use.buffer].tensor]));
    course.bytes[use.begin][kind] += use.bytes;
    if (use.end < course.bytes.size()) course.bytes[use.end][kind] -= use.bytes;
  }
  for (std::size_t i = 1; i < course.bytes.size(); ++i)
    for (std::size_t kind = 0; kind < held_kinds; ++kind) course.bytes[i][kind] += course.bytes[i - 1][kind];
  for (std::size_t i = 1; i < course.bytes.size(); ++i)
    if (total(course.bytes[i]) > total(course.bytes[course.peak])) course.peak = i;
  for (const Use& use : all)
    if (use.begin <= course.peak && course.peak < use.end) course.at_peak.push_back({use.buffer, use.bytes});
  std::stable_sort(course.at_peak.begin(), course.at_peak.end(),
                   [](const HeldBuffer& a, const HeldBuffer& b) { return a.bytes > b.bytes; });
  return course;
}

} // namespace soybean::explain
