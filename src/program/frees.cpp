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

std::vector<char> last_sends(const Program& program) {
  const std::vector<Instruction>& all = program.instructions;
  std::vector<char> result(all.size(), 0), read_later(program.buffers.size(), 1);
  for (std::size_t i = all.size(); i-- > 0;) {
    if (all[i].kind == Kind::start) {
      const BufferId source = all[i].inputs[0];
      result[i] = program.buffers[source].life == Life::transient && !read_later[source] ? 1 : 0;
    }
    for (const BufferId b : all[i].inputs) read_later[b] = all[i].kind == Kind::free ? 0 : 1;
  }
  const std::vector<std::size_t> starts = starts_of(program);
  std::vector<int> under_way(program.buffers.size(), 0); // transfers out of each
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == Kind::start && under_way[all[i].inputs[0]]++ > 0) result[i] = 0;
    if (all[i].kind == Kind::wait) --under_way[all[starts[static_cast<std::size_t>(all[i].token)]].inputs[0]];
  }
  return result;
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
