#include "plan/alternatives.hpp"

#include "base/error.hpp"
#include "plan/cut_by_cut.hpp"
#include "plan/images.hpp"
#include "plan/joint.hpp"
#include "plan/pins.hpp"
#include "plan/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::TensorId;
using tiling::Tiling;

void add(Traffic& traffic, const Model& model, TensorId tensor, std::int64_t bytes) {
  (model.batch_dim[tensor] >= 0 ? traffic.activations : traffic.weights) += bytes;
}

template<class T>
void add_new(std::vector<T>& list, T item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
}

bool is_batch(const Model& model, int variable, ops::Choice choice) {
  return choice >= 0 && model.forms[model.members[variable][0]].indices[choice].batch;
}

/// Into how many parts a variable's choices split the batch.
int batch_parts(const Model& model, int variable, const tiling::Mesh& mesh, const Choices& choices) {
  int parts = 1;
  for (std::size_t cut = 0; cut < choices.size(); ++cut)
    if (is_batch(model, variable, choices[cut])) parts *= mesh.cuts[cut];
  return parts;
}

/// Per layer its variables, in the order of their first nodes: the first one does its main work.
std::vector<std::vector<int>> variables_of_layers(const Model& model) {
  std::vector<std::vector<int>> variables(model.graph->layers.size());
  for (std::size_t n = 0; n < model.graph->nodes.size(); ++n)
    if (const int layer = model.graph->nodes[n].layer; layer != graph::none)
      add_new(variables[layer], model.variable[n]);
  return variables;
}

/// What the nodes and tensors of a plan may do in its neighbourhood.
class DomainBuilder {
public:
  DomainBuilder(const Model& model, const Plan& plan)
      : model_(model), plan_(plan), mesh_(plan.mesh), rules_(make_rules(model, "auto", images_to_split(model, plan))) {}

  Domain run() {
    domain_.idle.resize(model_.members.size());
    domain_.must_store.assign(model_.graph->tensors.size(), 0);
    for (std::size_t v = 0; v < model_.members.size(); ++v) add_uniform(static_cast<int>(v));
    std::set<int> varied;
    for (const std::vector<int>& variables : variables_of_layers(model_))
      if (!variables.empty() && !has_opposite(variables[0])) varied.insert(variables.begin(), variables.end());
    for (const int v : varied) add_near(v);
    for (std::size_t t = 0; t < model_.graph->tensors.size(); ++t)
      add_stored(static_cast<TensorId>(t), touches(model_.graph->tensors[t], varied));
    return std::move(domain_);
  }

private:
  const Choices& planned(int variable) const { return plan_.choices[model_.members[variable][0]]; }

  void add_choices(int variable, Choices choices) {
    if (!leaves_idle(model_, variable, mesh_, choices)) add_new(domain_.choices[variable], std::move(choices));
  }

  /// What the plan does, and what does the same on every cut.
  void add_uniform(int variable) {
    domain_.choices.push_back({planned(variable)});
    for (const ops::Choice choice : rules_.choices[variable]) add_choices(variable, Choices(mesh_.cuts.size(), choice));
  }

  /// The plan splits all of the batch or none of it, and the other of the two is possible.
  bool has_opposite(int variable) const {
    const int ranks = tiling::ranks(mesh_), parts = batch_parts(model_, variable, mesh_, planned(variable));
    if (parts != 1 && parts != ranks) return false;
    const std::vector<Choices>& list = domain_.choices[variable];
    return std::any_of(list.begin(), list.end(), [&](const Choices& choices) {
      return batch_parts(model_, variable, mesh_, choices) == ranks / parts;
    });
  }

  /// What does something else on a single cut.
  void add_near(int variable) {
    for (std::size_t cut = 0; cut < mesh_.cuts.size(); ++cut)
      for (const ops::Choice choice : rules_.choices[variable]) {
        Choices other = planned(variable);
        other[cut] = choice;
        add_choices(variable, std::move(other));
      }
  }

  bool touches(const graph::Tensor& tensor, const std::set<int>& varied) const {
    const auto is = [&](NodeId n) { return varied.contains(model_.variable[n]); };
    return (tensor.producer != graph::none && is(tensor.producer)) ||
           std::any_of(tensor.consumers.begin(), tensor.consumers.end(), is);
  }

  void add_stored(TensorId id, bool near) {
    const Shape& shape = model_.graph->tensors[id].shape;
    std::vector<Tiling>& list = domain_.stored.emplace_back();
    const auto add = [&](Tiling tiling) {
      if (!tiling::has_partial(tiling) && !tiling::has_halo(tiling))
        add_new(list, tiling::normalise(std::move(tiling), shape, mesh_));
    };
    const Tiling& stored = plan_.stored[id];
    add(stored);
    for (const Tiling& need : moves(*model_.graph, plan_, id).needed) add(need);
    for (const tiling::Entry& entry : rules_.entries[id]) {
      add(Tiling(mesh_.cuts.size(), entry));
      for (std::size_t cut = 0; near && cut < mesh_.cuts.size(); ++cut) {
        Tiling other = stored;
        for (tiling::Entry& same : other) // blocks of a dim have one unit
          if (entry.kind == tiling::Kind::split && same.kind == entry.kind && same.dim == entry.dim) same = entry;
        other[cut] = entry;
        add(std::move(other));
      }
    }
  }

  const Model& model_;
  const Plan& plan_;
  const tiling::Mesh& mesh_;
  Rules rules_;
  Domain domain_;
};

/// The neighbourhood of a plan: its search problem, in which every node may do what it does, the same on every cut or,
/// where a layer has no other choice, something else on a single cut.
class Neighbourhood {
public:
  Neighbourhood(const Graph& graph, const Plan& plan)
      : graph_(graph),
        plan_(plan),
        model_(make_model(graph)),
        costs_(plan.mesh),
        problem_(make_problem(model_, costs_, DomainBuilder(model_, plan).run())),
        variables_(variables_of_layers(model_)) {
    ensure(problem_.feasible, "a plan is in its neighbourhood");
    terms_.resize(model_.members.size());
    for (std::size_t t = 0; t < problem_.terms.size(); ++t)
      for (const Link& link : problem_.terms[t].links) terms_[link.variable].push_back(static_cast<int>(t));
    for (std::size_t v = 0; v < model_.members.size(); ++v)
      planned_.push_back(value_of(static_cast<int>(v), plan.choices[model_.members[v][0]]));
  }

  LayerSplits look(int layer) const {
    LayerSplits splits;
    const std::vector<int>& variables = variables_[layer];
    const std::vector<int> touched = touched_by(variables);
    for (const int t : touched) {
      const TensorId tensor = problem_.terms[t].tensor;
      add(splits.planned, model_, tensor, data_bytes(graph_, plan_, tensor));
    }
    const bool over_samples = std::any_of(variables.begin(), variables.end(), [&](int v) { return has_batch(v); });
    if (variables.empty() || plan_.mesh.cuts.empty() || !over_samples) return splits;
    const int all = tiling::ranks(plan_.mesh), planned = parts(variables[0], planned_[variables[0]]);
    splits.batch = best(variables, touched, [&](int p) { return planned == all ? p == all : p > planned; });
    splits.other = best(variables, touched, [&](int p) { return planned == 1 ? p == 1 : p < planned; });
    return splits;
  }

private:
  int value_of(int variable, const Choices& choices) const {
    const auto& lists = problem_.equivalent[variable];
    const auto found = std::find_if(lists.begin(), lists.end(), [&](const std::vector<Choices>& same) {
      return std::find(same.begin(), same.end(), choices) != same.end();
    });
    ensure(found != lists.end(), "what a plan does is in its neighbourhood");
    return static_cast<int>(found - lists.begin());
  }

  std::vector<int> touched_by(const std::vector<int>& variables) const {
    std::set<int> terms;
    for (const int v : variables) terms.insert(terms_[v].begin(), terms_[v].end());
    return {terms.begin(), terms.end()};
  }

  bool has_batch(int variable) const {
    const auto& allowed = model_.allowed[variable];
    return std::any_of(allowed.begin(), allowed.end(), [&](ops::Choice c) { return is_batch(model_, variable, c); });
  }

  /// Into how many parts a value splits the batch.
  int parts(int variable, int value) const {
    return batch_parts(model_, variable, plan_.mesh, problem_.values[variable][value]);
  }

  /// The values of which `wanted(parts)` holds; all where none does, or of a node that knows no samples.
  template<class F>
  std::vector<int> values_of(int variable, const F& wanted) const {
    std::vector<int> all, some;
    for (int x = 0; x < static_cast<int>(problem_.values[variable].size()); ++x) {
      all.push_back(x);
      if (has_batch(variable) && wanted(parts(variable, x))) some.push_back(x);
    }
    return some.empty() ? all : some;
  }

  std::int64_t cost(const std::vector<int>& terms, const std::vector<int>& assignment) const {
    std::int64_t sum = 0;
    for (const int t : terms) sum = std::min(never, sum + term_cost(problem_.terms[t], assignment).price);
    return sum;
  }

  /// The cheapest assignment found in which the layer's main work, its first variable, splits the batch into as many
  /// parts as is `wanted`, and the others into as many: from each such value of the first, one variable after the other
  /// takes its best value, as long as that helps.
  template<class F>
  std::optional<OtherSplit> best(const std::vector<int>& variables, const std::vector<int>& touched,
                                 const F& wanted) const {
    const int main = variables[0];
    std::int64_t least = never;
    std::vector<int> found;
    for (int start = 0; start < static_cast<int>(problem_.values[main].size()); ++start) {
      if (!wanted(parts(main, start))) continue;
      std::vector<std::vector<int>> open;
      std::vector<int> assignment = planned_;
      for (const int v : variables) {
        open.push_back(values_of(v, [&](int p) { return p == parts(main, start); }));
        assignment[v] = open.back()[0];
      }
      assignment[main] = start;
      descend(variables, open, assignment);
      const std::int64_t bytes = cost(touched, assignment);
      if (bytes < least) {
        least = bytes;
        found = std::move(assignment);
      }
    }
    if (least >= never) return std::nullopt;
    OtherSplit split{spread_text(model_.forms[model_.members[main][0]], plan_.mesh, problem_.values[main][found[main]]),
                     {}};
    for (const int t : touched)
      add(split.moved, model_, problem_.terms[t].tensor, term_cost(problem_.terms[t], found).price);
    return split;
  }

  void descend(const std::vector<int>& variables, const std::vector<std::vector<int>>& open,
               std::vector<int>& assignment) const {
    constexpr int most_sweeps = 8;
    bool better = true;
    for (int sweep = 0; better && sweep < most_sweeps; ++sweep) {
      better = false;
      for (std::size_t i = 1; i < variables.size(); ++i) {
        const int v = variables[i];
        int value = assignment[v];
        std::int64_t least = cost(terms_[v], assignment);
        for (const int other : open[i]) {
          assignment[v] = other;
          if (const std::int64_t bytes = cost(terms_[v], assignment); bytes < least) {
            least = bytes;
            value = other;
            better = true;
          }
        }
        assignment[v] = value;
      }
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  Model model_;
  MoveCosts costs_;
  Problem problem_;
  std::vector<std::vector<int>> variables_; ///< per layer
  std::vector<std::vector<int>> terms_;     ///< per variable, those it has to do with
  std::vector<int> planned_;                ///< per variable, the value the plan gives it
};

std::string times_text(double ratio) {
  return ratio < 9.95 ? fmt::format("{:.1f}", ratio) : fmt::format("{:.0f}", ratio);
}

/// Why not this other way.
std::string objection(const Traffic& planned, const OtherSplit& other) {
  const std::int64_t now = planned.total(), then = other.moved.total();
  if (then == now) return other.split + " would move as much";
  if (then < now) return fmt::format("{} would move {} less", other.split, bytes_text(now - then));
  if (now == 0) return fmt::format("{} would move {}", other.split, bytes_text(then));
  if (then < now + now / 10) return fmt::format("{} would move {} more", other.split, bytes_text(then - now));
  const std::string ratio = times_text(static_cast<double>(then) / static_cast<double>(now));
  const bool weights_then = other.moved.weights > other.moved.activations,
             weights_now = planned.weights > planned.activations;
  if (weights_then != weights_now)
    return fmt::format("{} outweigh {} {}:1", weights_then ? "weights" : "activations",
                       weights_then ? "activations" : "weights", ratio);
  return fmt::format("{} would move {} times as much", other.split, ratio);
}

/// The best plan of the rules, or the one found cut by cut where there are too many to look at.
Found best_of(const Setting& setting, const Rules& rules, std::int64_t incumbent) {
  Found found = joint(setting, rules, incumbent, "auto");
  if (found.found || found.optimal || incumbent != never) return found;
  RawTilings raw;
  found = cut_by_cut(setting, rules, "auto", raw);
  found.optimal = false;
  return found;
}

constexpr std::size_t most_mixed = 6'000; ///< nodes times cuts

class Search {
public:
  Search(const Graph& graph, const Plan& plan, NodeId node, const Options& options)
      : plan_(plan),
        options_(options),
        model_(make_model(graph)),
        costs_(plan.mesh, Detail::exact, options.machine),
        pins_(parse_pins(model_, plan.mesh, options)),
        setting_{model_, costs_, pins_, options.table_entries},
        rules_(make_rules(model_, "auto", std::max(images_to_split(setting_), images_to_split(model_, plan)))),
        variable_(model_.variable[node]),
        form_(model_.forms[node]),
        planned_(plan.choices[node].begin(), plan.choices[node].end()) {
    ways_.mixed = graph.nodes.size() * plan.mesh.cuts.size() <= most_mixed;
  }

  Ways run() {
    const std::vector<ops::Choice>& allowed = rules_.choices[variable_];
    std::vector<std::int64_t> alone; // price of the best plan of each choice
    for (const ops::Choice choice : allowed) {
      alone.push_back(try_way({choice}, never));
      if (alone.back() == never) ways_.impossible.push_back(index_word(form_, choice) + " alone");
    }
    if (planned_.size() > 2) try_way(planned_, never);
    for (std::size_t a = 0; a < allowed.size(); ++a)
      for (std::size_t b = a + 1; b < allowed.size(); ++b)
        if (ways_.mixed || std::set<ops::Choice>{allowed[a], allowed[b]} == planned_)
          try_way({allowed[a], allowed[b]}, std::min(alone[a], alone[b]) - 1);
    std::stable_sort(ways_.found.begin(), ways_.found.end(),
                     [](const Way& a, const Way& b) { return a.plan.price() < b.plan.price(); });
    const auto is_planned = [&](const Way& way) {
      return std::set<ops::Choice>(way.choices.begin(), way.choices.end()) == planned_;
    };
    const auto at = std::find_if(ways_.found.begin(), ways_.found.end(), is_planned);
    ensure(at != ways_.found.end(), "what a plan does is a way of doing it");
    ways_.planned = static_cast<std::size_t>(at - ways_.found.begin());
    return std::move(ways_);
  }

private:
  /// Returns the way's price, `never` if no plan below the limit is found.
  std::int64_t try_way(const std::set<ops::Choice>& choices, std::int64_t limit) {
    const std::vector<ops::Choice> list(choices.begin(), choices.end());
    if (choices == planned_) {
      ways_.found.push_back({list, plan_, plan_.status == Status::optimal});
      return plan_.price();
    }
    Rules rules = rules_;
    rules.choices[variable_] = list;
    Found found = best_of(setting_, rules, limit);
    if (!found.found) return never;
    ways_.found.push_back({list, std::move(found.plan), found.optimal});
    return ways_.found.back().plan.price();
  }

  const Plan& plan_;
  const Options& options_;
  Model model_;
  MoveCosts costs_;
  Pins pins_;
  Setting setting_;
  Rules rules_;
  int variable_;
  const ops::Form& form_;
  std::set<ops::Choice> planned_;
  Ways ways_;
};

} // namespace

Traffic traffic(const Graph& graph, const Plan& plan) {
  const Model model = make_model(graph);
  Traffic traffic;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t)
    add(traffic, model, static_cast<TensorId>(t), data_bytes(graph, plan, static_cast<TensorId>(t)));
  return traffic;
}

std::vector<LayerSplits> layer_splits(const Graph& graph, const Plan& plan) {
  const Neighbourhood neighbourhood(graph, plan);
  std::vector<LayerSplits> splits;
  splits.reserve(graph.layers.size());
  for (std::size_t layer = 0; layer < graph.layers.size(); ++layer)
    splits.push_back(neighbourhood.look(static_cast<int>(layer)));
  return splits;
}

std::string reason(const std::string& kind, const LayerSplits& splits) {
  if (!splits.batch && !splits.other) return "";
  const auto against = [&](const std::optional<OtherSplit>& other) {
    return other ? objection(splits.planned, *other) : std::string("no other split");
  };
  if (kind == "data") return against(splits.other);
  if (kind == "model") return against(splits.batch);
  if (!splits.batch || !splits.other) return against(splits.batch ? splits.batch : splits.other);
  const OtherSplit& better = splits.batch->moved.total() <= splits.other->moved.total() ? *splits.batch : *splits.other;
  return objection(splits.planned, better);
}

Ways ways(const Graph& graph, const Plan& plan, NodeId node, const Options& options) {
  return Search(graph, plan, node, options).run();
}

} // namespace soybean::plan
