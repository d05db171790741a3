#include "program/fuse.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace soybean::program {
namespace {

/// Nodes that may take an epilogue, and the nodes it may have, in this order.
constexpr std::array<std::string_view, 2> heads{"conv2d", "dense"};
constexpr std::array<std::string_view, 2> epilogues{"bias", "relu"};

bool mentions(const Instruction& i, BufferId b) {
  return std::count(i.inputs.begin(), i.inputs.end(), b) + std::count(i.outputs.begin(), i.outputs.end(), b) > 0;
}

class Fusion {
public:
  Fusion(const graph::Graph& graph, Program& program)
      : graph_(graph), program_(program), mentions_(program.buffers.size(), 0) {
    for (const Instruction& i : program.instructions) {
      for (BufferId b : i.inputs) ++mentions_[b];
      for (BufferId b : i.outputs) ++mentions_[b];
    }
    for (BufferId b : program.metrics) ++mentions_[b];
  }

  void run() {
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& head = program_.instructions[i];
      if (head.kind != Kind::compute || std::count(heads.begin(), heads.end(), graph_.nodes[head.node].op) == 0)
        continue;
      std::size_t at = i;
      for (std::string_view op : epilogues) at = join(at, op);
      i = at;
    }
    drop_unused();
  }

private:
  /// Joins the next computation to the one at `head` if it is `op` on its result. Returns where the head is then.
  std::size_t join(std::size_t head, std::string_view op) {
    std::vector<Instruction>& all = program_.instructions;
    const BufferId between = all[head].outputs[0];
    // made here, read by the next, freed
    if (program_.buffers[between].life != Life::transient || mentions_[between] != 3) return head;
    std::size_t next = head + 1;
    while (next < all.size() && all[next].kind != Kind::compute) {
      if (all[next].kind != Kind::free && mentions(all[next], between)) return head;
      ++next;
    }
    if (next == all.size() || graph_.nodes[all[next].node].op != op || all[next].inputs[0] != between) return head;
    if (!frees_at_once(next, between)) return head;

    Instruction joined = all[head];
    joined.epilogue.push_back(all[next].node);
    joined.inputs.insert(joined.inputs.end(), all[next].inputs.begin() + 1, all[next].inputs.end());
    joined.outputs = all[next].outputs;
    std::vector<Instruction> frees, moves;
    for (std::size_t i = head + 1; i < next; ++i) (all[i].kind == Kind::free ? frees : moves).push_back(all[i]);
    const std::size_t place = head + moves.size();
    auto out = std::move(moves.begin(), moves.end(), all.begin() + static_cast<std::ptrdiff_t>(head));
    *out++ = std::move(joined);
    out = std::move(frees.begin(), frees.end(), out);
    all.erase(out, all.begin() + static_cast<std::ptrdiff_t>(next) + 1);
    forget(between);
    return place; // what was erased lies behind
  }

  /// What is freed right after `user` includes b.
  bool frees_at_once(std::size_t user, BufferId b) const {
    const std::vector<Instruction>& all = program_.instructions;
    return user + 1 < all.size() && all[user + 1].kind == Kind::free && mentions(all[user + 1], b);
  }

  /// The buffer is not made any more, so it is not freed either.
  void forget(BufferId b) {
    for (Instruction& i : program_.instructions)
      if (i.kind == Kind::free) std::erase(i.inputs, b);
    std::erase_if(program_.instructions, [](const Instruction& i) { return i.kind == Kind::free && i.inputs.empty(); });
    mentions_[b] = 0;
  }

  /// Renumbers the buffers without those that no instruction makes any more.
  void drop_unused() {
    std::vector<BufferId> number(program_.buffers.size(), -1);
    std::vector<Buffer> kept;
    for (std::size_t b = 0; b < number.size(); ++b) {
      if (program_.buffers[b].life == Life::transient && mentions_[b] == 0) continue;
      number[b] = static_cast<BufferId>(kept.size());
      kept.push_back(std::move(program_.buffers[b]));
    }
    program_.buffers = std::move(kept);
    const auto renumber = [&](std::vector<BufferId>& ids) {
      for (BufferId& id : ids) id = number[id];
    };
    for (Buffer& b : program_.buffers)
      if (b.alias >= 0) b.alias = number[b.alias];
    for (Instruction& i : program_.instructions) renumber(i.inputs), renumber(i.outputs);
    renumber(program_.metrics);
  }

  const graph::Graph& graph_;
  Program& program_;
  std::vector<int> mentions_; // per buffer: in instructions and metrics
};

} // namespace

void fuse(const graph::Graph& graph, Program& program) {
  Fusion(graph, program).run();
}

} // namespace soybean::program
