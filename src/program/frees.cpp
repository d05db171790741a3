#include "program/frees.hpp"

#include <algorithm>
#include <utility>

namespace soybean::program {

std::vector<std::size_t> starts_of(const Program& program) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].kind != Kind::start) continue;
    const auto token = static_cast<std::size_t>(program.instructions[i].token);
    starts.resize(std::max(starts.size(), token + 1));
    starts[token] = i;
  }
  return starts;
}

void insert_frees(Program& program) {
  const std::vector<std::size_t> starts = starts_of(program);
  const std::vector<Instruction> old = std::exchange(program.instructions, {});
  std::vector<std::size_t> last(program.buffers.size(), 0);
  for (std::size_t i = 0; i < old.size(); ++i) {
    const Instruction& user = old[i].kind == Kind::wait ? old[starts[static_cast<std::size_t>(old[i].token)]] : old[i];
    for (BufferId b : user.inputs) last[b] = i;
    for (BufferId b : user.outputs) last[b] = i;
  }
  std::vector<std::vector<BufferId>> dying(old.size());
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    const auto& metrics = program.metrics;
    if (program.buffers[b].life == Life::transient && std::find(metrics.begin(), metrics.end(), id) == metrics.end())
      dying[last[b]].push_back(id);
  }
  for (std::size_t i = 0; i < old.size(); ++i) {
    program.instructions.push_back(old[i]);
    if (!dying[i].empty())
      program.instructions.push_back({.kind = Kind::free, .node = old[i].node, .inputs = dying[i]});
  }
}

} // namespace soybean::program
