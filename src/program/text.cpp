// The text form of a program: what golden tests compare and ranks hash before the first step.
#include "base/hash.hpp"
#include "program/program.hpp"

#include <fmt/format.h>

namespace soybean::program {
namespace {

std::string_view to_string(Life life) {
  switch (life) {
  case Life::persistent:
    return "persistent";
  case Life::fed:
    return "fed";
  case Life::transient:
    return "transient";
  }
  return "?";
}

std::string names(const Program& program, const std::vector<BufferId>& buffers) {
  std::string text;
  for (BufferId b : buffers) text += (text.empty() ? "" : " ") + program.buffers[b].name;
  return text;
}

std::string cuts_text(const tiling::Step& step) {
  if (step.cut < 0) return "";
  return step.cuts == 1 ? fmt::format(" cut {}", step.cut)
                        : fmt::format(" cuts {} to {}", step.cut, step.cut + step.cuts - 1);
}

std::string to_string(const graph::Graph& graph, const Program& program, const Instruction& i) {
  const std::string from = names(program, i.inputs), to = names(program, i.outputs);
  switch (i.kind) {
  case Kind::compute:
    return fmt::format("compute {} {}: {} -> {}", operators(graph, i), graph.nodes[i.node].name, from, to);
  case Kind::start:
    return fmt::format("start t{} {}{}{}: {} -> {}, {} elements", i.token, tiling::to_string(i.step.kind),
                       cuts_text(i.step), i.control ? " control" : "", from, to, i.step.elements);
  case Kind::wait:
    return fmt::format("wait t{}", i.token);
  case Kind::slice:
    return fmt::format("slice: {} -> {}", from, to);
  case Kind::free:
    return fmt::format("free {}", from);
  }
  return "?";
}

} // namespace

std::string operators(const graph::Graph& graph, const Instruction& compute) {
  std::string text = graph.nodes[compute.node].op;
  for (graph::NodeId n : compute.epilogue) text += "+" + graph.nodes[n].op;
  return text;
}

std::string to_string(const graph::Graph& graph, const Program& program) {
  std::string text = fmt::format("program {} mesh {} {}\n", graph.name, tiling::to_string(program.mesh),
                                 program.training ? "training" : "evaluation");
  for (const Buffer& b : program.buffers) {
    const graph::Tensor& t = graph.tensors[b.tensor];
    text += fmt::format("buffer {} {} {} {}", b.name, to_string(b.life), soybean::to_string(t.dtype),
                        soybean::to_string(t.shape));
    if (t.spatial > 1) text += fmt::format(" spatial {}", t.spatial);
    if (b.alias >= 0) text += " in " + program.buffers[b.alias].name;
    text += "\n";
  }
  for (const Instruction& i : program.instructions) text += to_string(graph, program, i) + "\n";
  for (BufferId b : program.metrics) text += "metric " + program.buffers[b].name + "\n";
  return text;
}

std::uint64_t hash(const graph::Graph& graph, const Program& program) {
  return hash_text(to_string(graph, program));
}

} // namespace soybean::program
