// Verification of programs: follows, instruction by instruction, which tensor each buffer's memory holds, and
// re-derives what a step moves from the blocks alone.
#include "base/error.hpp"
#include "ops/operator.hpp"
#include "program/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace soybean::program {
namespace {

using graph::TensorId;

/// Elements received by all ranks in a step, from its definition (DESIGN §3, "bytes").
std::int64_t received_elements(const Program& program, const Shape& shape, const tiling::Step& step) {
  std::int64_t total = 0;
  for (int rank = 0; rank < tiling::ranks(program.mesh); ++rank) {
    const Box from = tiling::block(step.from, shape, program.mesh, rank);
    const Box to = tiling::block(step.to, shape, program.mesh, rank);
    switch (step.kind) {
    case tiling::StepKind::slice:
      break;
    case tiling::StepKind::exchange:
      total += volume(to) - volume(intersect(from, to));
      break;
    case tiling::StepKind::all_reduce:
    case tiling::StepKind::reduce_scatter: // (p-1)·b per group, counted once by its first member; all-reduce twice that
      if (tiling::group(program.mesh, rank, step.cut, step.cuts)[0] == rank)
        total += volume(from) * (tiling::parts(program.mesh, step.cut, step.cuts) - 1) *
                 (step.kind == tiling::StepKind::all_reduce ? 2 : 1);
      break;
    }
  }
  return total;
}

class Verifier {
public:
  Verifier(const graph::Graph& graph, const Program& program)
      : graph_(graph),
        program_(program),
        active_(graph::active_nodes(graph, program.training)),
        computed_(graph.nodes.size(), 0),
        holds_(program.buffers.size(), graph::none),
        written_(program.buffers.size(), 0),
        freed_(program.buffers.size(), 0),
        arriving_(program.buffers.size(), 0),
        leaving_(program.buffers.size(), 0) {}

  void run() {
    check_buffers();
    for (at_ = 0; at_ < program_.instructions.size(); ++at_) step(program_.instructions[at_]);
    at_ = program_.instructions.size() - 1;
    check_end();
  }

private:
  void require(bool condition, const std::string& what) const {
    if (!condition) ensure(false, fmt::format("program of {}, instruction {}: {}", graph_.name, at_, what));
  }
  const std::string& name(BufferId b) const { return program_.buffers[b].name; }
  const graph::Tensor& tensor(BufferId b) const { return graph_.tensors[program_.buffers[b].tensor]; }

  void check_buffers() {
    std::set<std::string> names;
    Life life = Life::persistent;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      require(buffer.tensor >= 0 && buffer.tensor < static_cast<TensorId>(graph_.tensors.size()), "no such tensor");
      require(names.insert(buffer.name).second, "two buffers are called " + buffer.name);
      require(life <= buffer.life, buffer.name + " is out of order");
      life = buffer.life;
      tiling::check(buffer.tiling, tensor(static_cast<BufferId>(b)).shape, program_.mesh, buffer.name);
      require(buffer.life == Life::transient || !tiling::has_partial(buffer.tiling), buffer.name + " is partial");
      if (buffer.alias >= 0) {
        require(buffer.life == Life::transient && buffer.alias < static_cast<BufferId>(b), "alias of " + buffer.name);
        require(program_.buffers[buffer.alias].life == Life::transient, "alias of " + buffer.name);
      }
      if (buffer.life != Life::transient) holds_[b] = buffer.tensor, written_[b] = 1;
    }
  }

  void read(BufferId b) const {
    require(written_[b] && !arriving_[b], name(b) + " is read before it is written");
    require(!freed_[b], name(b) + " is read after it is freed");
    require(holds_[b] != graph::none, name(b) + " is read after its memory was given away");
  }

  /// `b` is about to be written; by `instruction`, which may read what it shares memory with.
  void write(BufferId b, const Instruction& instruction) {
    require(program_.buffers[b].life != Life::fed, name(b) + " is written by the program");
    require(!freed_[b] && !arriving_[b] && leaving_[b] == 0, name(b) + " is written after it is freed or under way");
    require(!written_[b] || program_.buffers[b].life == Life::persistent, name(b) + " is written twice");
    const BufferId alias = program_.buffers[b].alias;
    if (alias < 0) return;
    const auto& inputs = instruction.inputs;
    require(std::count(inputs.begin(), inputs.end(), alias) == 1, name(b) + " shares memory with no operand");
    require(holds_[alias] != graph::none && leaving_[alias] == 0,
            name(alias) + " gives its memory away too early or twice");
    given_.push_back(alias);
  }

  void step(const Instruction& i) {
    require(i.kind == Kind::compute || i.outputs.size() == (i.kind == Kind::wait || i.kind == Kind::free ? 0u : 1u),
            "wrong number of outputs");
    given_.clear();
    switch (i.kind) {
    case Kind::compute:
      compute(i);
      break;
    case Kind::slice:
    case Kind::start:
      move(i);
      break;
    case Kind::wait:
      wait(i);
      break;
    case Kind::free:
      for (BufferId b : i.inputs) {
        require(program_.buffers[b].life == Life::transient, name(b) + " is not transient but freed");
        require(written_[b] && !freed_[b], name(b) + " is freed twice or never written");
        require(!arriving_[b] && leaving_[b] == 0, name(b) + " is freed while under way");
        freed_[b] = 1;
      }
      break;
    }
    for (BufferId b : given_) holds_[b] = graph::none;
  }

  /// The node is one of the program that has not been computed yet.
  void follow(graph::NodeId node) {
    require(expected(node), graph_.nodes[node].name + " has no place in this program");
    require(!std::exchange(computed_[node], 1), graph_.nodes[node].name + " is computed twice");
  }

  /// What the instruction reads, node after node; an epilogue's first operand is the one result of the node before it,
  /// which nobody else may read.
  std::vector<TensorId> operands(const Instruction& i) {
    follow(i.node);
    std::vector<TensorId> tensors = graph_.nodes[i.node].inputs;
    graph::NodeId before = i.node;
    for (graph::NodeId n : i.epilogue) {
      follow(n);
      const graph::Node& node = graph_.nodes[n];
      const std::vector<TensorId>& made = graph_.nodes[before].outputs;
      require(made.size() == 1 && !node.inputs.empty() && node.inputs[0] == made[0],
              node.name + " does not follow on " + graph_.nodes[before].name);
      for (graph::NodeId reader : graph_.tensors[made[0]].consumers)
        require(reader == n || !expected(reader), graph_.tensors[made[0]].name + " is never stored but read");
      tensors.insert(tensors.end(), node.inputs.begin() + 1, node.inputs.end());
      before = n;
    }
    return tensors;
  }

  void compute(const Instruction& i) {
    const std::vector<TensorId> needed = operands(i);
    const graph::Node& node = graph_.nodes[i.epilogue.empty() ? i.node : i.epilogue.back()];
    require(i.inputs.size() == needed.size() && i.outputs.size() == node.outputs.size(), "operands of " + node.name);
    for (std::size_t k = 0; k < i.inputs.size(); ++k) {
      read(i.inputs[k]);
      const TensorId operand = graph::operand(graph_, needed[k], program_.training);
      require(holds_[i.inputs[k]] == operand,
              fmt::format("{} reads {} where it needs {}", node.name, name(i.inputs[k]), graph_.tensors[operand].name));
    }
    for (std::size_t k = 0; k < i.outputs.size(); ++k) write(i.outputs[k], i);
    for (std::size_t k = 0; k < i.outputs.size(); ++k) {
      const BufferId b = i.outputs[k];
      const TensorId t = node.outputs[k];
      require(program_.buffers[b].tensor == t || program_.buffers[b].tensor == graph_.tensors[t].previous,
              node.name + " writes " + name(b));
      holds_[b] = t;
      written_[b] = 1;
    }
  }

  void move(const Instruction& i) {
    require(i.inputs.size() == 1, "wrong number of inputs");
    const BufferId from = i.inputs[0], to = i.outputs[0];
    read(from);
    write(to, i);
    const TensorId source = program_.buffers[from].tensor, target = program_.buffers[to].tensor;
    require(source == target || graph_.tensors[source].previous == target, "another tensor comes out of " + name(from));
    require(i.step.from == program_.buffers[from].tiling && i.step.to == program_.buffers[to].tiling,
            "the step does not fit its buffers");
    require((i.kind == Kind::slice) == (i.step.kind == tiling::StepKind::slice), "wrong kind of step");
    if (i.kind == Kind::slice)
      for (int rank = 0; rank < tiling::ranks(program_.mesh); ++rank)
        require(contains(tiling::block(i.step.from, tensor(from).shape, program_.mesh, rank),
                         tiling::block(i.step.to, tensor(from).shape, program_.mesh, rank)),
                "a slice is not part of what it is taken from");
    require(i.step.elements == received_elements(program_, tensor(from).shape, i.step),
            "the step's elements do not add up");
    const TensorId value = holds_[from];
    written_[to] = 1;
    if (i.kind == Kind::slice) {
      holds_[to] = value;
      return;
    }
    require(i.token >= 0 && tokens_.emplace(i.token, at_).second, "token used twice");
    arriving_[to] = 1;
    ++leaving_[from];
    under_way_[i.token] = value;
  }

  void wait(const Instruction& i) {
    require(under_way_.contains(i.token), "wait for what was never started");
    const Instruction& start = program_.instructions[tokens_.at(i.token)];
    --leaving_[start.inputs[0]];
    arriving_[start.outputs[0]] = 0;
    holds_[start.outputs[0]] = under_way_.at(i.token);
    under_way_.erase(i.token);
  }

  bool expected(graph::NodeId n) const { return active_[n] != 0; }

  void check_end() const {
    require(under_way_.empty(), "a redistribution is never waited for");
    for (graph::NodeId n = 0; n < static_cast<graph::NodeId>(graph_.nodes.size()); ++n)
      require(!expected(n) || computed_[n], graph_.nodes[n].name + " is left out");
    std::vector<TensorId> metrics;
    for (TensorId metric : graph_.metrics)
      if (expected(graph_.tensors[metric].producer)) metrics.push_back(metric);
    require(program_.metrics.size() == metrics.size(), "wrong number of metrics");
    for (std::size_t m = 0; m < program_.metrics.size(); ++m) {
      const BufferId b = program_.metrics[m];
      require(b >= 0 && !freed_[b] && written_[b] && holds_[b] == metrics[m], "metric is not there at the end");
      require(program_.buffers[b].tiling == tiling::replicated(program_.mesh), name(b) + " is not replicated");
    }
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      const bool metric = std::count(program_.metrics.begin(), program_.metrics.end(), static_cast<BufferId>(b)) > 0;
      require(buffer.life != Life::transient || metric || freed_[b], buffer.name + " is never freed");
      if (buffer.life != Life::persistent) continue;
      const TensorId next = graph_.tensors[buffer.tensor].next;
      require(holds_[b] == (program_.training && next != graph::none ? next : buffer.tensor),
              buffer.name + " does not hold its next value at the end");
    }
  }

  const graph::Graph& graph_;
  const Program& program_;
  std::vector<char> active_, computed_; // per node
  std::size_t at_ = 0;
  std::vector<TensorId> holds_; // per buffer; none: not written yet, or its memory was given to another
  std::vector<char> written_, freed_, arriving_; // arriving: a start writes it
  std::vector<int> leaving_;                     // starts that read it
  std::vector<BufferId> given_;                  // by the current instruction
  std::map<std::int32_t, std::size_t> tokens_;   // → the start instruction
  std::map<std::int32_t, TensorId> under_way_;   // token → what arrives
};

void check_operands(const graph::Graph& graph, const plan::Plan& plan, const Program& program, const Instruction& i) {
  const graph::Node& node = graph.nodes[i.node];
  const auto tilings_of = [&](graph::NodeId n) {
    return ops::operand_tilings(ops::form(graph, graph.nodes[n]), graph, graph.nodes[n], plan.mesh, plan.choices[n]);
  };
  ops::OperandTilings expected = tilings_of(i.node);
  for (graph::NodeId n : i.epilogue) {
    ops::OperandTilings next = tilings_of(n);
    ensure(next.inputs[0] == expected.outputs[0],
           fmt::format("program of {}: {} follows {} in another tiling", graph.name, graph.nodes[n].name, node.name));
    expected.inputs.insert(expected.inputs.end(), next.inputs.begin() + 1, next.inputs.end());
    expected.outputs = std::move(next.outputs);
  }
  const auto check = [&](const std::vector<BufferId>& buffers, const std::vector<tiling::Tiling>& tilings) {
    for (std::size_t k = 0; k < buffers.size(); ++k)
      ensure(program.buffers[buffers[k]].tiling == tilings[k],
             fmt::format("program of {}: {} takes or makes {} where its form says {}", graph.name, node.name,
                         program.buffers[buffers[k]].name, tiling::to_string(tilings[k])));
  };
  check(i.inputs, expected.inputs);
  check(i.outputs, expected.outputs);
}

} // namespace

void verify(const graph::Graph& graph, const Program& program) {
  Verifier(graph, program).run();
}

void verify(const graph::Graph& graph, const plan::Plan& plan, const Program& program) {
  ensure(program.mesh == plan.mesh, "program of " + graph.name + ": its mesh is not the plan's");
  verify(graph, program);
  for (const Instruction& i : program.instructions)
    if (i.kind == Kind::compute) check_operands(graph, plan, program, i);
  for (const Buffer& b : program.buffers)
    if (b.life == Life::persistent)
      ensure(b.tiling == plan.stored[b.tensor],
             "program of " + graph.name + ": " + b.name + " is not stored as planned");
  if (!program.training) return;
  const PlannedBytes planned = planned_bytes(graph, program);
  ensure(planned.data == plan.bytes && planned.control == plan.control_bytes,
         fmt::format("program of {}: moves {} + {} bytes where the plan says {} + {}", graph.name, planned.data,
                     planned.control, plan.bytes, plan.control_bytes));
}

} // namespace soybean::program
