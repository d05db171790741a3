// The table of passes. One row and one function (or source file) each; every pass keeps the program valid.
#include "base/error.hpp"
#include "ops/operator.hpp"
#include "program/fuse.hpp"
#include "program/overlap.hpp"
#include "program/program.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace soybean::program {
namespace {

/// The tiling with terms of sums taken for copies: the same blocks.
tiling::Tiling blocks_of(tiling::Tiling tiling) {
  for (tiling::Entry& entry : tiling)
    if (entry.kind == tiling::Kind::partial) entry = tiling::replicate();
  return tiling;
}

/// On every rank the two buffers take equally many bytes, laid out alike.
bool same_memory(const graph::Graph& graph, const Program& program, BufferId a, BufferId b) {
  const Buffer &x = program.buffers[a], &y = program.buffers[b];
  const graph::Tensor &s = graph.tensors[x.tensor], &t = graph.tensors[y.tensor];
  if (s.dtype != t.dtype || s.spatial != t.spatial) return false;
  if (s.shape == t.shape) return blocks_of(x.tiling) == blocks_of(y.tiling);
  for (int rank = 0; rank < tiling::ranks(program.mesh); ++rank) // flatten: other dims, same elements
    if (volume(tiling::block(x.tiling, s.shape, program.mesh, rank)) !=
        volume(tiling::block(y.tiling, t.shape, program.mesh, rank)))
      return false;
  return true;
}

/// Per buffer: the instruction after which it is freed, or -1.
std::vector<std::int64_t> deaths(const Program& program) {
  std::vector<std::int64_t> death(program.buffers.size(), -1);
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].kind == Kind::free)
      for (BufferId b : program.instructions[i].inputs) death[b] = static_cast<std::int64_t>(i) - 1;
  return death;
}

bool transient(const Program& program, BufferId b) {
  return program.buffers[b].life == Life::transient;
}

/// Results take the memory of operands that die where they are made: in the operators that allow it, and in
/// all-reduces.
void in_place(const graph::Graph& graph, Program& program) {
  const std::vector<std::int64_t> death = deaths(program);
  std::vector<char> taken(program.buffers.size(), 0); // by a result of the same instruction
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const auto share = [&](BufferId input, BufferId output, std::size_t end) {
      if (!transient(program, input) || !transient(program, output) || taken[input]) return;
      if (death[input] != static_cast<std::int64_t>(end) || !same_memory(graph, program, input, output)) return;
      const auto& inputs = instruction.inputs;
      if (std::count(inputs.begin(), inputs.end(), input) != 1) return;
      program.buffers[output].alias = input;
      taken[input] = 1;
    };
    if (instruction.kind == Kind::compute) {
      const std::vector<int>& allowed = ops::find(graph.nodes[instruction.node].op).in_place;
      for (std::size_t o = 0; o < allowed.size() && o < instruction.outputs.size(); ++o)
        if (allowed[o] >= 0) share(instruction.inputs[allowed[o]], instruction.outputs[o], i);
    } else if (instruction.kind == Kind::start && instruction.step.kind == tiling::StepKind::all_reduce) {
      for (std::size_t w = i + 1; w < program.instructions.size(); ++w) // lives to the wait
        if (program.instructions[w].kind == Kind::wait && program.instructions[w].token == instruction.token) {
          share(instruction.inputs[0], instruction.outputs[0], w);
          break;
        }
    }
  }
}

} // namespace

const std::vector<Pass>& passes() {
  static const std::vector<Pass> table = {
      {"fuse", "bias and activation run in the call of the convolution or product they follow", fuse},
      {"overlap", "transfers start as soon as they can and are waited for when nothing else can be done", overlap},
      {"in_place", "results take the memory of operands that die", in_place},
  };
  return table;
}

void check_passes(const std::vector<std::string>& skip) {
  for (const std::string& name : skip) {
    std::string known;
    bool found = false;
    for (const Pass& pass : passes()) {
      found = found || pass.name == name;
      known += (known.empty() ? "" : ", ") + std::string(pass.name);
    }
    if (!found)
      fail("parallel.skip_passes: unknown pass, got \"{}\" expected one of {}. check the spelling", name, known);
  }
}

std::vector<PassTime> run_passes(const graph::Graph& graph, Program& program, const std::vector<std::string>& skip) {
  check_passes(skip);
  std::vector<PassTime> times;
  for (const Pass& pass : passes()) {
    if (std::find(skip.begin(), skip.end(), pass.name) != skip.end()) continue;
    const auto begin = std::chrono::steady_clock::now();
    pass.run(graph, program);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    verify(graph, program);
    times.push_back({std::string(pass.name), took.count()});
  }
  return times;
}

} // namespace soybean::program
