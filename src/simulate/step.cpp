#include "simulate/step.hpp"

#include "base/error.hpp"
#include "ops/operator.hpp"

#include <algorithm>
#include <deque>
#include <string>

namespace soybean::simulate {
namespace {

using program::BufferId;
using program::Instruction;
using program::Kind;

/// A transfer that has been started: the network does one after the other.
struct Transfer {
  std::int32_t token;
  std::size_t instruction;
  double left; ///< seconds
  double begin = -1;
};

class Walk {
public:
  Walk(const machine::Setting& setting, const graph::Graph& graph, const plan::Plan& plan,
       const program::Program& program)
      : setting_(setting), graph_(graph), plan_(plan), program_(program) {
    step_.layers.resize(graph.layers.size() + 1);
  }

  Step run() {
    read_batch();
    for (at_ = 0; at_ < program_.instructions.size(); ++at_) {
      const Instruction& instruction = program_.instructions[at_];
      switch (instruction.kind) {
      case Kind::compute:
        compute(instruction);
        break;
      case Kind::slice:
        pack(instruction, redistribution(instruction).local);
        break;
      case Kind::start: {
        const machine::StepSeconds seconds = redistribution(instruction);
        pack(instruction, seconds.local);
        step_.transferring += seconds.network;
        queue_.push_back({instruction.token, at_, seconds.network});
        break;
      }
      case Kind::wait:
        wait(instruction);
        break;
      case Kind::free:
        break;
      }
    }
    ensure(queue_.empty(), "every transfer is waited for");
    step_.seconds = clock_;
    std::stable_sort(step_.timeline.begin(), step_.timeline.end(),
                     [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    return std::move(step_);
  }

private:
  LayerSeconds& layer(const Instruction& instruction) {
    const std::int32_t layer = graph_.nodes[instruction.node].layer;
    return layer == graph::none ? step_.layers.back() : step_.layers[layer];
  }

  machine::StepSeconds redistribution(const Instruction& instruction) const {
    return machine::step_seconds(setting_, graph_.tensors[program_.buffers[instruction.inputs[0]].tensor],
                                 instruction.step);
  }

  machine::Amount amount(graph::NodeId node) const {
    return machine::amount(graph_, graph_.nodes[node], ops::form(graph_, graph_.nodes[node]), program_.mesh,
                           plan_.choices[node]);
  }

  double block_bytes(BufferId b) const {
    const graph::Tensor& tensor = graph_.tensors[program_.buffers[b].tensor];
    const Box box =
        tiling::block(program_.buffers[b].tiling, tensor.shape, program_.mesh, tiling::ranks(program_.mesh) - 1);
    return static_cast<double>(volume(box) * size_of(tensor.dtype));
  }

  void read_batch() {
    double bytes = 0;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.buffers[b].life == program::Life::fed) bytes += block_bytes(static_cast<BufferId>(b));
    clock_ = step_.reading = machine::batch_seconds(setting_, bytes);
  }

  void compute(const Instruction& instruction) {
    const graph::Node& node = graph_.nodes[instruction.node];
    machine::Amount amount = this->amount(instruction.node);
    // Operands of the epilogue come on top; its result takes the place of the first one's.
    for (std::size_t i = node.inputs.size(); i < instruction.inputs.size(); ++i)
      amount.bytes += block_bytes(instruction.inputs[i]);
    for (const graph::NodeId n : instruction.epilogue) amount.flops += this->amount(n).flops;
    step_.flops += amount.flops;
    const bool renames = amount.flops == 0 && program_.buffers[instruction.outputs[0]].alias == instruction.inputs[0];
    const double seconds = renames ? 0 : machine::kernel_seconds(setting_, node.op, amount);
    step_.computing[static_cast<std::size_t>(node.phase)] += seconds;
    layer(instruction).computing += seconds;
    busy(seconds);
  }

  void pack(const Instruction& instruction, double seconds) {
    step_.packing += seconds;
    layer(instruction).packing += seconds;
    busy(seconds);
  }

  /// Kernels run for so long; transfers go on beside them.
  void busy(double seconds) {
    if (seconds == 0) return;
    const double overlap = setting_.machine.overlap, end = clock_ + seconds;
    step_.timeline.push_back({at_, false, clock_, end});
    double begin = clock_;
    while (!queue_.empty() && overlap > 0 && begin < end) {
      Transfer& first = queue_.front();
      if (first.begin < 0) first.begin = begin;
      const double done = std::min(first.left, (end - begin) * overlap);
      first.left -= done;
      begin += done / overlap;
      if (first.left > 0) break;
      finish(begin);
    }
    clock_ = end;
  }

  void finish(double end) {
    step_.timeline.push_back({queue_.front().instruction, true, queue_.front().begin, end});
    queue_.pop_front();
  }

  /// Nothing is computed until the transfer, and those before it, are done.
  void wait(const Instruction& instruction) {
    const auto pending = [&] {
      return std::any_of(queue_.begin(), queue_.end(), [&](const Transfer& t) { return t.token == instruction.token; });
    };
    while (pending()) {
      Transfer& first = queue_.front();
      if (first.begin < 0) first.begin = clock_;
      clock_ += first.left;
      step_.waiting += first.left;
      layer(instruction).waiting += first.left;
      finish(clock_);
    }
  }

  const machine::Setting& setting_;
  const graph::Graph& graph_;
  const plan::Plan& plan_;
  const program::Program& program_;
  Step step_;
  std::deque<Transfer> queue_;
  double clock_ = 0;
  std::size_t at_ = 0;
};

} // namespace

Step predict(const machine::Setting& setting, const graph::Graph& graph, const plan::Plan& plan,
             const program::Program& program) {
  ensure(setting.mesh == program.mesh, "the program is one of the setting's mesh");
  return Walk(setting, graph, plan, program).run();
}

Step predict(const machine::Setting& setting, const graph::Graph& graph, const plan::Plan& plan,
             const std::vector<std::string>& skip) {
  program::Program program = program::lower(graph, plan, program::Mode::train);
  program::run_passes(graph, program, skip);
  return predict(setting, graph, plan, program);
}

} // namespace soybean::simulate
