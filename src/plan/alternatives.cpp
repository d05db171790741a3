#include "plan/alternatives.hpp"

#include "base/error.hpp"
#include "plan/cut_by_cut.hpp"
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

Choices same_on_every_cut(const tiling::Mesh& mesh, ops::Choice choice) {
  return Choices(mesh.cuts.size(), choice);
}

/// What the plan does, and what does the same on every cut.
Domain uniform_domain(const Model& model, const Plan& plan) {
  const tiling::Mesh& mesh = plan.mesh;
  Domain domain;
  domain.idle.resize(model.members.size());
  domain.must_store.assign(model.graph->tensors.size(), 0);
  for (std::size_t v = 0; v < model.members.size(); ++v) {
    std::vector<Choices>& list = domain.choices.emplace_back();
    list.push_back(plan.choices[model.members[v][0]]);
    for (const ops::Choice choice : model.allowed[v])
      if (Choices all = same_on_every_cut(mesh, choice); !leaves_idle(model, static_cast<int>(v), mesh, all))
        add_new(list, std::move(all));
  }
  for (std::size_t t = 0; t < model.graph->tensors.size(); ++t) {
    const Shape& shape = model.graph->tensors[t].shape;
    std::vector<Tiling>& list = domain.stored.emplace_back();
    for (const tiling::Entry& entry : model.entries[t])
      add_new(list, tiling::normalise(Tiling(mesh.cuts.size(), entry), shape, mesh));
    std::vector<Tiling> others = moves(*model.graph, plan, static_cast<TensorId>(t)).needed;
    others.push_back(plan.stored[t]);
    for (Tiling& tiling : others)
      if (!tiling::has_partial(tiling)) add_new(list, std::move(tiling));
  }
  return domain;
}

/// The neighbourhood of a plan: its search problem, in which every node may do what it does or the same on every cut.
class Neighbourhood {
public:
  Neighbourhood(const Graph& graph, const Plan& plan)
      : graph_(graph),
        plan_(plan),
        model_(make_model(graph)),
        costs_(plan.mesh),
        problem_(make_problem(model_, costs_, uniform_domain(model_, plan))) {
    ensure(problem_.feasible, "a plan is in its neighbourhood");
    terms_.resize(model_.members.size());
    for (std::size_t t = 0; t < problem_.terms.size(); ++t)
      for (const Link& link : problem_.terms[t].links) terms_[link.variable].push_back(static_cast<int>(t));
    for (std::size_t v = 0; v < model_.members.size(); ++v)
      planned_.push_back(value_of(static_cast<int>(v), plan.choices[model_.members[v][0]]));
    variables_.resize(graph.layers.size());
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].layer != graph::none) add_new(variables_[graph.nodes[n].layer], model_.variable[n]);
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
    splits.batch = best(variables, touched, true);
    splits.other = best(variables, touched, false);
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

  bool is_batch(int variable, ops::Choice choice) const {
    return choice >= 0 && model_.forms[model_.members[variable][0]].indices[choice].batch;
  }
  bool has_batch(int variable) const {
    const auto& allowed = model_.allowed[variable];
    return std::any_of(allowed.begin(), allowed.end(), [&](ops::Choice c) { return is_batch(variable, c); });
  }

  /// Values with the batch split on every cut, or on none; all of them where a node knows no samples.
  std::vector<int> options(int variable, bool batch) const {
    const bool any = !has_batch(variable);
    std::vector<int> values;
    for (std::size_t x = 0; x < problem_.values[variable].size(); ++x) {
      const Choices& choices = problem_.values[variable][x];
      if (any ||
          std::all_of(choices.begin(), choices.end(), [&](ops::Choice c) { return is_batch(variable, c) == batch; }))
        values.push_back(static_cast<int>(x));
    }
    return values;
  }

  std::int64_t cost(const std::vector<int>& terms, const std::vector<int>& assignment) const {
    std::int64_t sum = 0;
    for (const int t : terms) sum = std::min(never, sum + term_cost(problem_.terms[t], assignment).bytes);
    return sum;
  }

  /// The cheapest assignment found from each value of the first variable, the layer's main work: one variable after the
  /// other takes its best value, as long as that helps.
  std::optional<OtherSplit> best(const std::vector<int>& variables, const std::vector<int>& touched, bool batch) const {
    std::vector<std::vector<int>> open;
    for (const int v : variables) {
      open.push_back(options(v, batch));
      if (open.back().empty()) return std::nullopt;
    }
    std::int64_t least = never;
    std::vector<int> found;
    for (const int start : open[0]) {
      std::vector<int> assignment = planned_;
      for (std::size_t i = 0; i < variables.size(); ++i) assignment[variables[i]] = open[i][0];
      assignment[variables[0]] = start;
      descend(variables, open, assignment);
      const std::int64_t bytes = cost(touched, assignment);
      if (bytes < least) {
        least = bytes;
        found = std::move(assignment);
      }
    }
    if (least >= never) return std::nullopt;
    const int main = variables[0];
    OtherSplit split{spread_text(model_.forms[model_.members[main][0]], plan_.mesh, problem_.values[main][found[main]]),
                     {}};
    for (const int t : touched)
      add(split.moved, model_, problem_.terms[t].tensor, term_cost(problem_.terms[t], found).bytes);
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
  std::vector<std::vector<int>> terms_;     ///< per variable, those it has to do with
  std::vector<std::vector<int>> variables_; ///< per layer, in the order of their first nodes
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
        costs_(plan.mesh),
        pins_(parse_pins(model_, plan.mesh, options)),
        setting_{model_, costs_, pins_, options.table_entries},
        variable_(model_.variable[node]),
        form_(model_.forms[node]),
        planned_(plan.choices[node].begin(), plan.choices[node].end()) {
    ways_.mixed = graph.nodes.size() * plan.mesh.cuts.size() <= most_mixed;
  }

  Ways run() {
    const std::vector<ops::Choice>& allowed = model_.allowed[variable_];
    std::vector<std::int64_t> alone; // bytes of the best plan of each choice
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
                     [](const Way& a, const Way& b) { return a.plan.bytes < b.plan.bytes; });
    const auto is_planned = [&](const Way& way) {
      return std::set<ops::Choice>(way.choices.begin(), way.choices.end()) == planned_;
    };
    const auto at = std::find_if(ways_.found.begin(), ways_.found.end(), is_planned);
    ensure(at != ways_.found.end(), "what a plan does is a way of doing it");
    ways_.planned = static_cast<std::size_t>(at - ways_.found.begin());
    return std::move(ways_);
  }

private:
  /// Returns the way's bytes, `never` if no plan below the limit is found.
  std::int64_t try_way(const std::set<ops::Choice>& choices, std::int64_t limit) {
    const std::vector<ops::Choice> list(choices.begin(), choices.end());
    if (choices == planned_) {
      ways_.found.push_back({list, plan_, plan_.status == Status::optimal});
      return plan_.bytes;
    }
    Rules rules = make_rules(model_, "auto");
    rules.choices[variable_] = list;
    Found found = best_of(setting_, rules, limit);
    if (!found.found) return never;
    ways_.found.push_back({list, std::move(found.plan), found.optimal});
    return ways_.found.back().plan.bytes;
  }

  const Plan& plan_;
  const Options& options_;
  Model model_;
  MoveCosts costs_;
  Pins pins_;
  Setting setting_;
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
