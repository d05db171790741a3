#include "plan/problem.hpp"

#include "base/error.hpp"
#include "plan/legality.hpp"
#include "plan/step_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Role;
using graph::TensorId;
using tiling::Tiling;

/// Operand tilings of all members of a variable, in the order of its members.
using ValueTilings = std::vector<ops::OperandTilings>;

bool same_tilings(const ValueTilings& a, const ValueTilings& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.inputs == y.inputs && x.outputs == y.outputs; });
}

template<class List>
void pick(List& list, const std::vector<int>& indices) {
  List picked;
  picked.reserve(indices.size());
  for (int i : indices) picked.push_back(std::move(list[i]));
  list = std::move(picked);
}

/// Everything the cost of a term depends on but the names of its variables.
std::vector<std::int64_t> all_numbers(const Term& term) {
  std::vector<std::int64_t> all = {term.may_pass ? 1 : 0};
  const auto add = [&](const auto& list) {
    all.push_back(static_cast<std::int64_t>(list.size()));
    all.insert(all.end(), list.begin(), list.end());
  };
  for (const std::vector<std::int64_t>& list : {term.from, term.to, term.held, term.held_stored}) add(list);
  for (const Tiling& tiling : term.tilings) {
    const auto stored = std::find(term.candidates.begin(), term.candidates.end(), tiling);
    all.push_back(tiling::has_partial(tiling) ? -1 : stored - term.candidates.begin());
  }
  for (const Link& link : term.links) {
    add(link.produced);
    all.push_back(static_cast<std::int64_t>(link.needed.size()));
    for (const auto& column : link.needed) add(column);
  }
  return all;
}

/// Where a tensor is used or made: input or output `position` of the `member`-th node of a variable.
struct Place {
  int variable = -1;
  int member = -1;
  int position = -1;
};

class Builder {
public:
  Builder(const Model& model, MoveCosts& costs, const Domain& domain)
      : model_(model), graph_(*model.graph), costs_(costs), domain_(domain) {}

  Problem run() {
    problem_.model = &model_;
    problem_.mesh = costs_.mesh();
    find_places();
    admitted_.assign(model_.members.size(), 0);
    do {
      list_values();
      for (bool changed = true; changed;) changed = drop_impossible();
    } while (admit_idle());
    for (const auto& values : problem_.values) problem_.feasible = problem_.feasible && !values.empty();
    if (!problem_.feasible) return std::move(problem_);
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) add_term(static_cast<TensorId>(t));
    std::map<std::vector<std::int64_t>, int> kinds;
    for (const Term& term : problem_.terms)
      problem_.kinds.push_back(kinds.try_emplace(all_numbers(term), static_cast<int>(kinds.size())).first->second);
    return std::move(problem_);
  }

private:
  void find_places() {
    uses_.resize(graph_.tensors.size());
    maker_.resize(graph_.tensors.size());
    for (std::size_t v = 0; v < model_.members.size(); ++v)
      for (std::size_t m = 0; m < model_.members[v].size(); ++m) {
        const graph::Node& node = graph_.nodes[model_.members[v][m]];
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
          uses_[node.inputs[i]].push_back({static_cast<int>(v), static_cast<int>(m), static_cast<int>(i)});
        for (std::size_t i = 0; i < node.outputs.size(); ++i)
          maker_[node.outputs[i]] = {static_cast<int>(v), static_cast<int>(m), static_cast<int>(i)};
      }
  }

  void list_values() {
    problem_.values.assign(model_.members.size(), {});
    problem_.equivalent.assign(model_.members.size(), {});
    problem_.computing.assign(costs_.machine() == nullptr ? 0 : model_.members.size(), {});
    tilings_.assign(model_.members.size(), {});
    for (std::size_t v = 0; v < model_.members.size(); ++v) {
      for (const Choices& choices : domain_.choices[v]) add_value(v, choices);
      if (admitted_[v])
        for (const Choices& choices : domain_.idle[v]) add_value(v, choices);
    }
  }

  void add_value(std::size_t v, const Choices& choices) {
    ValueTilings tilings;
    for (NodeId n : model_.members[v]) {
      tilings.push_back(ops::operand_tilings(model_.forms[n], graph_, graph_.nodes[n], problem_.mesh, choices));
      if (costs_.detail() == Detail::exact) continue;
      for (Tiling& tiling : tilings.back().inputs) tiling = class_of(std::move(tiling), costs_.alike());
      for (Tiling& tiling : tilings.back().outputs) tiling = class_of(std::move(tiling), costs_.alike());
    }
    const machine::Setting* machine = costs_.machine();
    const std::int64_t time = machine == nullptr ? 0
                                                 : computing_time(*machine, model_, static_cast<int>(v), choices) +
                                                       reporting_time(v, tilings);
    for (std::size_t x = 0; x < tilings_[v].size(); ++x)
      if (same_tilings(tilings_[v][x], tilings) && (machine == nullptr || problem_.computing[v][x] == time))
        return problem_.equivalent[v][x].push_back(choices);
    if (machine != nullptr) problem_.computing[v].push_back(time);
    problem_.values[v].push_back(choices);
    problem_.equivalent[v].push_back({choices});
    tilings_[v].push_back(std::move(tilings));
  }

  /// Of metrics, which are brought to all ranks.
  std::int64_t reporting_time(std::size_t v, const ValueTilings& tilings) {
    std::int64_t sum = 0;
    for (std::size_t m = 0; m < tilings.size(); ++m) {
      const std::vector<TensorId>& outputs = graph_.nodes[model_.members[v][m]].outputs;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (const graph::Tensor& tensor = graph_.tensors[outputs[i]]; tensor.role == Role::metric)
          sum += costs_.table(tensor, {tilings[m].outputs[i]}, {tiling::replicated(problem_.mesh)})[0];
    }
    return sum;
  }

  /// Admits idle choices to variables that have no value left. True if there were any.
  bool admit_idle() {
    bool changed = false;
    for (std::size_t v = 0; v < admitted_.size(); ++v) {
      if (!problem_.values[v].empty() || admitted_[v] || domain_.idle[v].empty()) continue;
      admitted_[v] = 1;
      changed = true;
    }
    return changed;
  }

  const Tiling& needed(const Place& p, std::size_t value) const {
    return tilings_[p.variable][value][p.member].inputs[p.position];
  }
  const Tiling& produced(const Place& p, std::size_t value) const {
    return tilings_[p.variable][value][p.member].outputs[p.position];
  }

  /// The tensor may go from its maker to its one user as a partial sum.
  bool may_pass(TensorId t) const {
    return graph_.tensors[t].producer != graph::none && uses_[t].size() == 1 && !domain_.must_store[t];
  }

  /// Drops values that need a partial tiling nobody can deliver. True if any was.
  bool drop_impossible() {
    bool changed = false;
    for (std::size_t t = 0; t < uses_.size(); ++t)
      for (const Place& use : uses_[t]) {
        std::vector<Tiling> offered;
        if (may_pass(static_cast<TensorId>(t)))
          for (std::size_t x = 0; x < tilings_[maker_[t].variable].size(); ++x)
            offered.push_back(produced(maker_[t], x));
        std::vector<int> possible;
        const std::size_t count = tilings_[use.variable].size();
        for (std::size_t x = 0; x < count; ++x) {
          const Tiling& need = needed(use, x);
          if (tiling::has_partial(need) && std::find(offered.begin(), offered.end(), need) == offered.end()) continue;
          possible.push_back(static_cast<int>(x));
        }
        if (possible.size() == count) continue;
        pick(problem_.values[use.variable], possible);
        pick(problem_.equivalent[use.variable], possible);
        if (!problem_.computing.empty()) pick(problem_.computing[use.variable], possible);
        pick(tilings_[use.variable], possible);
        changed = true;
      }
    return changed;
  }

  void add_term(TensorId t) {
    const graph::Tensor& tensor = graph_.tensors[t];
    if (tensor.previous != graph::none || tensor.role == Role::metric) return;
    if (uses_[t].empty() && tensor.next == graph::none) return;
    Term term{.tensor = t};
    term.may_pass = may_pass(t);
    const TensorId made = tensor.next == graph::none ? t : tensor.next;
    std::map<int, Link> links;
    if (graph_.tensors[made].producer != graph::none) {
      Link& link = links[maker_[made].variable];
      for (std::size_t x = 0; x < problem_.values[maker_[made].variable].size(); ++x)
        link.produced.push_back(intern(term, produced(maker_[made], x)));
    }
    for (const Place& use : uses_[t]) {
      std::vector<std::int32_t> column;
      column.reserve(problem_.values[use.variable].size());
      for (std::size_t x = 0; x < problem_.values[use.variable].size(); ++x)
        column.push_back(intern(term, needed(use, x)));
      auto& columns = links[use.variable].needed;
      if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(std::move(column));
    }
    for (auto& [variable, link] : links) {
      link.variable = variable;
      term.links.push_back(std::move(link));
    }
    term.candidates = is_free_source(tensor) ? std::vector<Tiling>{Tiling{}} : domain_.stored[t];
    ensure(!term.candidates.empty(), fmt::format("tensor '{}' can not be stored", tensor.name));
    price(term);
    problem_.terms.push_back(std::move(term));
  }

  static std::int32_t intern(Term& term, const Tiling& tiling) {
    const auto found = std::find(term.tilings.begin(), term.tilings.end(), tiling);
    if (found == term.tilings.end()) {
      term.tilings.push_back(tiling);
      return static_cast<std::int32_t>(term.tilings.size()) - 1;
    }
    return static_cast<std::int32_t>(found - term.tilings.begin());
  }

  void price(Term& term) {
    const graph::Tensor& tensor = graph_.tensors[term.tensor];
    const bool free = is_free_source(tensor);
    const std::size_t count = term.tilings.size(), stored = term.candidates.size();
    std::vector<char> is_produced(count, 0), is_needed(count, 0);
    for (const Link& link : term.links) {
      for (std::int32_t id : link.produced) is_produced[id] = 1;
      for (const auto& column : link.needed)
        for (std::int32_t id : column) is_needed[id] = tiling::has_partial(term.tilings[id]) ? 0 : 1;
    }
    term.from.assign(count * stored, never);
    term.to.assign(count * stored, never);
    std::vector<Tiling> made, wanted;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_produced[i]) made.push_back(term.tilings[i]);
      if (is_needed[i]) wanted.push_back(term.tilings[i]);
    }
    const std::vector<std::int64_t> nothing(free ? wanted.size() : 0, 0);
    const std::vector<std::int64_t>& in = free ? nothing : costs_.table(tensor, made, term.candidates);
    const std::vector<std::int64_t>& out = free ? nothing : costs_.table(tensor, term.candidates, wanted);
    for (std::size_t i = 0, a = 0, b = 0; i < count; ++i) {
      for (std::size_t s = 0; s < stored; ++s) {
        if (is_produced[i]) term.from[i * stored + s] = in[a * stored + s];
        if (is_needed[i]) term.to[i * stored + s] = out[s * wanted.size() + b];
      }
      a += is_produced[i] ? 1 : 0;
      b += is_needed[i] ? 1 : 0;
    }
    for (const Tiling& tiling : term.tilings) term.held.push_back(largest_block_bytes(tensor, tiling, problem_.mesh));
    for (const Tiling& tiling : term.candidates)
      term.held_stored.push_back(free ? 0 : largest_block_bytes(tensor, tiling, problem_.mesh));
    if (costs_.per_held_byte() > 0 && !free) charge(term);
    drop_dominated(term, is_produced, is_needed);
  }

  /// Adds what holding the stored tensor costs to bringing it there, and what holding a copy costs to making it.
  void charge(Term& term) const {
    const std::size_t stored = term.candidates.size();
    const auto add = [](std::int64_t& price, std::int64_t more) {
      if (price < never) price += more;
    };
    for (std::size_t id = 0; id < term.tilings.size(); ++id)
      for (std::size_t s = 0; s < stored; ++s) {
        add(term.from[id * stored + s], costs_.holding(term.held_stored[s]));
        if (term.tilings[id] != term.candidates[s]) add(term.to[id * stored + s], costs_.holding(term.held[id]));
      }
  }

  /// Drops stored candidates that are never better than some other one, whatever is produced and needed.
  static void drop_dominated(Term& term, const std::vector<char>& is_produced, const std::vector<char>& is_needed) {
    const std::size_t count = term.tilings.size(), stored = term.candidates.size();
    const auto copied = [&](std::size_t id, std::size_t s) {
      return term.tilings[id] == term.candidates[s] ? 0 : term.held[id];
    };
    const auto beats = [&](std::size_t a, std::size_t b) { // by a lower price, or by the same and no more that is held
      bool cheaper = false, leaner = term.held_stored[a] <= term.held_stored[b];
      for (std::size_t id = 0; id < count; ++id) {
        const std::size_t at = id * stored;
        if (is_produced[id] && term.from[at + a] > term.from[at + b]) return false;
        if (is_needed[id] && term.to[at + a] > term.to[at + b]) return false;
        if (is_needed[id] && copied(id, a) > copied(id, b)) leaner = false;
      }
      for (std::size_t id = 0; id < count && !leaner; ++id) // something is always produced
        if (is_produced[id]) {
          cheaper = term.from[id * stored + a] < term.from[id * stored + b];
          if (!cheaper) break;
        }
      return leaner || cheaper;
    };
    std::vector<int> kept;
    for (std::size_t s = 0; s < stored; ++s) {
      bool beaten = false;
      for (std::size_t other = 0; other < stored && !beaten; ++other)
        beaten = other != s && beats(other, s) && (other < s || !beats(s, other));
      if (!beaten) kept.push_back(static_cast<int>(s));
    }
    if (kept.size() == stored) return;
    std::vector<std::int64_t> from, to;
    for (std::size_t id = 0; id < count; ++id)
      for (int s : kept) {
        from.push_back(term.from[id * stored + static_cast<std::size_t>(s)]);
        to.push_back(term.to[id * stored + static_cast<std::size_t>(s)]);
      }
    term.from = std::move(from);
    term.to = std::move(to);
    pick(term.candidates, kept);
    pick(term.held_stored, kept);
  }

  const Model& model_;
  const Graph& graph_;
  MoveCosts& costs_;
  const Domain& domain_;
  Problem problem_;
  std::vector<char> admitted_;                     // per variable: its idle choices too
  std::vector<std::vector<ValueTilings>> tilings_; // per variable, per value
  std::vector<std::vector<Place>> uses_;           // per tensor
  std::vector<Place> maker_;                       // per tensor
};

} // namespace

Problem make_problem(const Model& model, MoveCosts& costs, const Domain& domain) {
  return Builder(model, costs, domain).run();
}

TermCost term_cost(const Term& term, const std::vector<int>& assignment) {
  std::int32_t produced = -1;
  std::vector<std::int32_t> needed;
  for (const Link& link : term.links) {
    const int value = assignment[link.variable];
    if (!link.produced.empty()) produced = link.produced[value];
    for (const auto& column : link.needed)
      if (std::find(needed.begin(), needed.end(), column[value]) == needed.end()) needed.push_back(column[value]);
  }
  if (term.may_pass && produced == needed[0] && tiling::has_partial(term.tilings[produced]))
    return {0, term.held[produced], -1, produced};
  TermCost best;
  const std::size_t stored = term.candidates.size();
  for (std::size_t s = 0; s < stored; ++s) {
    TermCost cost{produced < 0 ? 0 : term.from[produced * stored + s], term.held_stored[s], static_cast<int>(s), -1};
    for (std::int32_t id : needed) {
      cost.price = std::min(never, cost.price + term.to[id * stored + s]);
      if (term.tilings[id] != term.candidates[s]) cost.held += term.held[id];
    }
    if (cost.price < best.price || (cost.price == best.price && cost.price < never && cost.held < best.held))
      best = cost;
  }
  return best;
}

std::vector<int> kinds_among(const Problem& problem, const std::vector<std::vector<int>>& keep) {
  std::map<std::vector<int>, int> lists, kinds;
  const auto number = [](std::map<std::vector<int>, int>& numbers, const std::vector<int>& key) {
    return numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second;
  };
  std::vector<int> list, result;
  for (const std::vector<int>& values : keep) list.push_back(number(lists, values));
  for (std::size_t t = 0; t < problem.terms.size(); ++t) {
    std::vector<int> key = {problem.kinds[t]};
    for (const Link& link : problem.terms[t].links) key.push_back(list[link.variable]);
    result.push_back(number(kinds, key));
  }
  return result;
}

Problem restrict_values(const Problem& problem, const std::vector<std::vector<int>>& keep) {
  Problem result = problem;
  result.kinds = kinds_among(problem, keep);
  for (std::size_t v = 0; v < keep.size(); ++v) {
    pick(result.values[v], keep[v]);
    pick(result.equivalent[v], keep[v]);
    if (!result.computing.empty()) pick(result.computing[v], keep[v]);
  }
  for (Term& term : result.terms)
    for (Link& link : term.links) {
      if (!link.produced.empty()) pick(link.produced, keep[link.variable]);
      for (auto& column : link.needed) pick(column, keep[link.variable]);
    }
  return result;
}

Plan make_plan(const Problem& problem, const std::vector<int>& assignment) {
  const Model& model = *problem.model;
  const Graph& graph = *model.graph;
  Plan plan;
  plan.mesh = problem.mesh;
  plan.stored.assign(graph.tensors.size(), tiling::replicated(problem.mesh));
  for (int variable : model.variable) plan.choices.push_back(problem.values[variable][assignment[variable]]);
  for (const Term& term : problem.terms) {
    if (!is_decided(graph, term.tensor)) continue;
    const TermCost cost = term_cost(term, assignment);
    ensure(cost.price < never,
           fmt::format("tensor '{}' can not be stored as planned", graph.tensors[term.tensor].name));
    plan.stored[term.tensor] = cost.stored >= 0 ? term.candidates[cost.stored] : term.tilings[cost.passed];
  }
  derive_stored(graph, plan);
  return plan;
}

} // namespace soybean::plan
