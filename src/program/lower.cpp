// Lowering: graph + plan → the straight-line program of a step (DESIGN §3, "produced, stored, needed").
#include "base/error.hpp"
#include "ops/operator.hpp"
#include "program/frees.hpp"
#include "program/program.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace soybean::program {
namespace {

using graph::NodeId;
using graph::Role;
using graph::TensorId;
using tiling::Tiling;

bool is_fed(const graph::Tensor& t) {
  return graph::comes_with_samples(t.role) || t.role == Role::hyper;
}

bool is_persistent(const graph::Tensor& t) {
  return t.producer == graph::none && (t.role == Role::parameter || t.role == Role::state);
}

class Lowering {
public:
  Lowering(const graph::Graph& graph, const plan::Plan& plan, Mode mode) : graph_(graph), plan_(plan) {
    program_.mesh = plan.mesh;
    program_.training = mode == Mode::train;
    active_ = graph::active_nodes(graph, program_.training);
    stored_.assign(graph.tensors.size(), -1);
    tilings_.reserve(graph.nodes.size());
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      tilings_.push_back(
          ops::operand_tilings(ops::form(graph, graph.nodes[n]), graph, graph.nodes[n], plan.mesh, plan.choices[n]));
  }

  Program run() {
    add_persistent();
    add_fed();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (included(static_cast<NodeId>(n))) add_node(static_cast<NodeId>(n));
    for (TensorId metric : graph_.metrics)
      if (included(graph_.tensors[metric].producer)) program_.metrics.push_back(stored_[metric]);
    insert_frees(program_);
    return std::move(program_);
  }

private:
  bool included(NodeId node) const { return active_[node] != 0; }
  TensorId operand(TensorId tensor) const { return graph::operand(graph_, tensor, program_.training); }

  BufferId add_buffer(TensorId tensor, const Tiling& tiling, Life life) {
    std::string name = graph_.tensors[tensor].name + "@" + tiling::to_string(tiling);
    const int repeated = ++names_[name];
    if (repeated > 1) name += "#" + std::to_string(repeated);
    program_.buffers.push_back({.name = name, .tensor = tensor, .tiling = tiling, .life = life});
    return static_cast<BufferId>(program_.buffers.size()) - 1;
  }

  void add_persistent() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
      if (is_persistent(graph_.tensors[t]))
        stored_[t] = add_buffer(static_cast<TensorId>(t), plan_.stored[t], Life::persistent);
  }

  /// One buffer per tiling any node of the whole graph needs, so that all programs of a run agree on them.
  void add_fed() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (!is_fed(graph_.tensors[t])) continue;
      for (NodeId n : graph_.tensors[t].consumers)
        for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i) {
          if (graph_.nodes[n].inputs[i] != static_cast<TensorId>(t)) continue;
          const auto key = std::pair{static_cast<TensorId>(t), tilings_[n].inputs[i]};
          if (!copies_.contains(key)) copies_[key] = add_buffer(key.first, key.second, Life::fed);
        }
    }
  }

  void add_node(NodeId n) {
    const graph::Node& node = graph_.nodes[n];
    Instruction compute{.kind = Kind::compute, .node = n};
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      compute.inputs.push_back(needed(n, operand(node.inputs[i]), tilings_[n].inputs[i]));
    for (std::size_t i = 0; i < node.outputs.size(); ++i) compute.outputs.push_back(result(compute, i));
    program_.instructions.push_back(compute);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) store(n, node.outputs[i], compute.outputs[i]);
  }

  /// The buffer that holds `tensor` in the tiling an operand must arrive in; copied from the stored one on first use.
  BufferId needed(NodeId n, TensorId tensor, const Tiling& tiling) {
    const BufferId stored = stored_[tensor];
    if (stored >= 0 && program_.buffers[stored].tiling == tiling) return stored;
    const auto key = std::pair{tensor, tiling};
    if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
    ensure(stored >= 0, "lowering: " + graph_.tensors[tensor].name + " is used before it is produced");
    return copies_[key] = move(n, stored, tiling, -1, graph::is_control(graph_.tensors[tensor].role));
  }

  /// Where result i of a compute instruction is written: the persistent buffer of the value it replaces where operator
  /// and tilings allow, otherwise a buffer of its own.
  BufferId result(const Instruction& compute, std::size_t i) {
    const graph::Node& node = graph_.nodes[compute.node];
    const TensorId tensor = node.outputs[i];
    const Tiling& produced = tilings_[compute.node].outputs[i];
    const TensorId previous = graph_.tensors[tensor].previous;
    if (previous != graph::none) {
      const std::vector<int>& in_place = ops::find(node.op).in_place;
      const int input = i < in_place.size() ? in_place[i] : -1;
      const BufferId home = stored_[previous];
      if (input >= 0 && compute.inputs[input] == home && program_.buffers[home].tiling == produced) return home;
    }
    return add_buffer(tensor, produced, Life::transient);
  }

  /// Brings a fresh result to the tiling it is kept in.
  void store(NodeId n, TensorId tensor, BufferId produced) {
    const graph::Tensor& t = graph_.tensors[tensor];
    if (t.previous != graph::none) {
      const BufferId home = stored_[t.previous];
      stored_[tensor] = produced == home ? home : move(n, produced, program_.buffers[home].tiling, home, false);
    } else if (t.role == Role::metric) {
      stored_[tensor] = move(n, produced, tiling::replicated(plan_.mesh), -1, true);
    } else if (operand(tensor) == tensor &&
               std::any_of(t.consumers.begin(), t.consumers.end(), [&](NodeId c) { return included(c); })) {
      stored_[tensor] = move(n, produced, plan_.stored[tensor], -1, graph::is_control(t.role));
    }
  }

  /// Appends the steps that turn `from` into `to`, ending in buffer `target` if that is one (>= 0).
  BufferId move(NodeId n, BufferId from, const Tiling& to, BufferId target, bool control) {
    const TensorId tensor = program_.buffers[from].tensor;
    const graph::Tensor& t = graph_.tensors[tensor];
    std::vector<tiling::Step> steps = tiling::path(plan_.mesh, {t.shape, t.units}, program_.buffers[from].tiling, to);
    if (steps.empty() && target >= 0) // a copy of this rank's own block
      steps.push_back({.kind = tiling::StepKind::slice, .cut = -1, .cuts = 1, .from = to, .to = to, .elements = 0});
    BufferId at = from;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const bool last = s + 1 == steps.size();
      const BufferId next = last && target >= 0 ? target : add_buffer(tensor, steps[s].to, Life::transient);
      add_step(n, steps[s], at, next, control);
      at = next;
    }
    return at;
  }

  void add_step(NodeId n, const tiling::Step& step, BufferId from, BufferId to, bool control) {
    Instruction instruction{.kind = Kind::slice, .node = n, .inputs = {from}, .outputs = {to}, .step = step};
    instruction.control = control;
    if (step.kind == tiling::StepKind::exchange && step.elements == 0) // nobody lacks anything
      instruction.step.kind = tiling::StepKind::slice;
    if (instruction.step.kind != tiling::StepKind::slice) {
      instruction.kind = Kind::start;
      instruction.token = tokens_++;
    }
    const bool waits = instruction.kind == Kind::start;
    program_.instructions.push_back(std::move(instruction));
    if (waits) program_.instructions.push_back({.kind = Kind::wait, .node = n, .token = tokens_ - 1});
  }

  const graph::Graph& graph_;
  const plan::Plan& plan_;
  Program program_;
  std::vector<char> active_;                               // per node
  std::vector<ops::OperandTilings> tilings_;               // per node
  std::vector<BufferId> stored_;                           // per tensor, -1: not there (yet)
  std::map<std::pair<TensorId, Tiling>, BufferId> copies_; // fed buffers and copies made so far
  std::map<std::string, int> names_;
  std::int32_t tokens_ = 0;
};

} // namespace

Program lower(const graph::Graph& graph, const plan::Plan& plan, Mode mode) {
  ensure(plan.choices.size() == graph.nodes.size() && plan.stored.size() == graph.tensors.size(),
         "lowering: the plan is not one of this graph");
  return Lowering(graph, plan, mode).run();
}

PlannedBytes planned_bytes(const graph::Graph& graph, const Program& program) {
  PlannedBytes planned;
  for (const Instruction& i : program.instructions) {
    if (i.kind != Kind::start) continue;
    const std::int64_t bytes = i.step.elements * size_of(graph.tensors[program.buffers[i.inputs[0]].tensor].dtype);
    (i.control ? planned.control : planned.data) += bytes;
  }
  return planned;
}

} // namespace soybean::program
