#include "support/random_plan.hpp"

#include "base/philox.hpp"
#include "ops/operator.hpp"

#include <algorithm>

namespace soybean::support {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Role;
using graph::TensorId;
using ops::Choice;
using tiling::Tiling;

class Draw {
public:
  Draw(std::uint64_t seed, std::uint64_t name) : stream_{seed, name, 0} {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(philox::bits(stream_, drawn_++) % static_cast<std::uint64_t>(n));
  }
  bool chance(int percent) { return below(100) < percent; }
  template<class T>
  const T& one_of(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(static_cast<std::int64_t>(items.size())))];
  }

private:
  philox::Stream stream_;
  std::uint64_t drawn_ = 0;
};

class Planner {
public:
  Planner(const Graph& graph, const tiling::Mesh& mesh, std::uint64_t seed, Splits splits)
      : graph_(graph), draw_(seed, 0x706c616e), splits_(splits), produced_(graph.tensors.size()) {
    plan_.strategy = "file";
    plan_.mesh = mesh;
  }

  plan::Plan run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) choose(static_cast<NodeId>(n));
    plan_.stored.resize(graph_.tensors.size());
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) store(static_cast<TensorId>(t));
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t)
      if (const TensorId previous = graph_.tensors[t].previous; previous != graph::none)
        plan_.stored[t] = plan_.stored[previous];
    plan::evaluate(graph_, plan_);
    return plan_;
  }

private:
  void choose(NodeId n) {
    const graph::Node& node = graph_.nodes[n];
    const ops::Form form = ops::form(graph_, node);
    std::vector<Choice> choices;
    if (node.twin != graph::none) {
      choices = plan_.choices[node.twin];
    } else {
      std::vector<Choice> allowed = ops::allowed_choices(form);
      std::erase(allowed, ops::choose_linear);
      const bool tries = form.linear && (allowed.empty() || draw_.chance(70));
      if (!tries || !passes_on(n, form, choices)) choices.clear();
      while (choices.size() < plan_.mesh.cuts.size()) choices.push_back(pick(form, allowed));
    }
    plan_.choices.push_back(choices);
    tilings_.push_back(ops::operand_tilings(form, graph_, node, plan_.mesh, choices));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) produced_[node.outputs[o]] = tilings_.back().outputs[o];
  }

  /// Mostly an index with something to split; empty blocks are legal and drawn now and then.
  Choice pick(const ops::Form& form, const std::vector<Choice>& allowed) {
    std::vector<Choice> spatial;
    for (Choice c : allowed)
      if (splits_ == Splits::images && c >= 0 && form.indices[c].spatial) spatial.push_back(c);
    if (!spatial.empty() && draw_.chance(85)) return draw_.one_of(spatial);
    Choice choice = draw_.one_of(allowed);
    for (int tries = 0; tries < 4 && choice >= 0 && form.indices[choice].count < 2; ++tries)
      choice = draw_.one_of(allowed);
    return choice;
  }

  /// For a linear node: the choices under which it takes its operands just as they are produced, partial sums included.
  /// False if there are none, or nothing is partial.
  bool passes_on(NodeId n, const ops::Form& form, std::vector<Choice>& choices) {
    const graph::Node& node = graph_.nodes[n];
    const Tiling& first = produced_[node.inputs[0]];
    if (first.size() != plan_.mesh.cuts.size() || !tiling::has_partial(first)) return false;
    const std::vector<Choice> allowed = ops::allowed_choices(form);
    for (const tiling::Entry& entry : first) {
      Choice choice = ops::choose_replicated;
      if (entry.kind == tiling::Kind::partial) choice = ops::choose_linear;
      if (entry.kind == tiling::Kind::split) choice = static_cast<Choice>(form.inputs[0][entry.dim].index);
      if (std::find(allowed.begin(), allowed.end(), choice) == allowed.end()) return false;
      choices.push_back(choice);
    }
    const auto tilings = ops::operand_tilings(form, graph_, node, plan_.mesh, choices);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorId t = node.inputs[i];
      if (produced_[t] != tilings.inputs[i] || graph_.tensors[t].consumers.size() != 1) return false;
      if (std::count(node.inputs.begin(), node.inputs.end(), t) != 1) return false;
    }
    return true;
  }

  std::vector<Tiling> needed(TensorId t) const {
    std::vector<Tiling> result;
    for (NodeId n : graph_.tensors[t].consumers)
      for (std::size_t i = 0; i < graph_.nodes[n].inputs.size(); ++i)
        if (graph_.nodes[n].inputs[i] == t) result.push_back(tilings_[n].inputs[i]);
    return result;
  }

  void store(TensorId id) {
    const graph::Tensor& t = graph_.tensors[id];
    const std::vector<Tiling> needs = needed(id);
    const bool kept = t.role == Role::parameter || t.role == Role::state;
    Tiling& stored = plan_.stored[id];
    if (t.previous != graph::none) return; // follows
    if (t.role == Role::metric)
      stored = tiling::replicated(plan_.mesh);
    else if (t.producer == graph::none && !kept)
      stored = needs.empty() ? tiling::replicated(plan_.mesh) : needs.front();
    else if (t.producer != graph::none && (needs.empty() || tiling::has_partial(needs.front())))
      stored = produced_[id];
    else
      stored = draw_stored(id, needs);
  }

  Tiling draw_stored(TensorId id, std::vector<Tiling> candidates) {
    if (!produced_[id].empty() && !tiling::has_partial(produced_[id])) candidates.push_back(produced_[id]);
    std::erase_if(candidates, tiling::has_halo); // never stored
    if (!candidates.empty() && draw_.chance(60)) return draw_.one_of(candidates);
    const graph::Tensor& t = graph_.tensors[id];
    Tiling tiling;
    for (std::size_t cut = 0; cut < plan_.mesh.cuts.size(); ++cut) {
      tiling.push_back(tiling::replicate());
      if (t.shape.empty() || draw_.chance(35)) continue;
      const auto dim = static_cast<int>(draw_.below(static_cast<std::int64_t>(t.shape.size())));
      tiling.back() = tiling::split(dim, t.units.empty() ? 1 : t.units[dim]);
    }
    return tiling::normalise(tiling, t.shape, plan_.mesh);
  }

  const Graph& graph_;
  Draw draw_;
  Splits splits_;
  plan::Plan plan_;
  std::vector<ops::OperandTilings> tilings_; // per node
  std::vector<Tiling> produced_;             // per tensor; empty: a source
};

} // namespace

tiling::Mesh random_mesh(std::uint64_t seed, int ranks) {
  Draw draw(seed, 0x6d657368);
  tiling::Mesh mesh;
  for (int left = ranks; left > 1;) {
    std::vector<int> divisors;
    for (int d = 2; d <= left; ++d)
      if (left % d == 0) divisors.push_back(d);
    const int cut = draw.chance(70) ? divisors.front() : draw.one_of(divisors);
    mesh.cuts.insert(mesh.cuts.begin() + draw.below(static_cast<std::int64_t>(mesh.cuts.size()) + 1), cut);
    left /= cut;
  }
  return mesh;
}

plan::Plan random_plan(const Graph& graph, const tiling::Mesh& mesh, std::uint64_t seed, Splits splits) {
  return Planner(graph, mesh, seed, splits).run();
}

plan::Plan serial_plan(const Graph& graph) {
  return Planner(graph, {}, 0, Splits::any).run();
}

} // namespace soybean::support
