#include "plan/planner.hpp"

#include "base/error.hpp"
#include "config/table.hpp"
#include "plan/model.hpp"
#include "plan/pins.hpp"
#include "plan/problem.hpp"
#include "plan/search.hpp"
#include "plan/strategy.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::TensorId;
using tiling::Tiling;

constexpr double most_moves = 3e6; // to be priced in a joint search over all cuts: a few seconds
constexpr int most_ranks_improved = 64;

/// What all searches for one graph on one mesh share.
struct Setting {
  const Model& model;
  MoveCosts& costs;
  const Pins& pins;
  std::int64_t table_entries;
};

/// A plan and how it compares with the best possible one under its strategy.
struct Found {
  bool found = false;
  Plan plan;
  std::int64_t bound = 0;
  bool optimal = false;
};

Found finish(const Setting& setting, const Problem& problem, const Solution& solution, std::string_view strategy) {
  Found result{solution.found, {}, solution.bound, solution.optimal};
  if (!solution.found) return result;
  result.plan = make_plan(problem, solution.assignment);
  result.plan.strategy = strategy;
  evaluate(*setting.model.graph, result.plan);
  ensure(result.plan.bytes == solution.bytes, "the plan does not cost what the search says");
  return result;
}

Found search(const Setting& setting, const Domain& domain, std::int64_t incumbent, std::string_view strategy) {
  const Problem problem = make_problem(setting.model, setting.costs, domain);
  return finish(setting, problem, solve(problem, {incumbent, setting.table_entries}), strategy);
}

/// The cheapest plan of a domain whatever it costs; idle choices are admitted everywhere if there is none without.
Found cheapest(const Setting& setting, Domain domain, std::string_view strategy) {
  Found result = search(setting, domain, never, strategy);
  if (result.found) return result;
  for (std::size_t v = 0; v < domain.choices.size(); ++v)
    domain.choices[v].insert(domain.choices[v].end(), domain.idle[v].begin(), domain.idle[v].end());
  return search(setting, domain, never, strategy);
}

/// Whether all cuts can be searched jointly: how many moves would have to be priced.
bool is_small(const Setting& setting, const Rules& rules) {
  const auto cuts = static_cast<double>(setting.costs.mesh().cuts.size());
  const Model& model = setting.model;
  std::vector<double> tilings(model.graph->tensors.size(), 0); // that nodes may need or make
  for (std::size_t n = 0; n < model.graph->nodes.size(); ++n) {
    const graph::NodeId twin = model.graph->nodes[n].twin;
    if (twin != graph::none && model.graph->nodes[twin].op == model.graph->nodes[n].op)
      continue; // priced with that one
    const double values = std::pow(static_cast<double>(rules.choices[model.variable[n]].size()), cuts);
    for (TensorId t : model.graph->nodes[n].inputs) tilings[t] += values;
    for (TensorId t : model.graph->nodes[n].outputs) tilings[t] += values;
  }
  double moves = 0;
  for (std::size_t t = 0; t < tilings.size(); ++t)
    moves += tilings[t] * std::pow(static_cast<double>(rules.entries[t].size()), cuts);
  return moves <= most_moves;
}

/// What a plan decides, for a search that leaves some cuts open. Tensors that are passed on unstored have the entries
/// they are passed in, where those could be stored.
Fixed as_fixed(const Setting& setting, const Plan& plan, const RawTilings& raw) {
  Fixed fixed;
  for (const auto& members : setting.model.members) fixed.choices.push_back(plan.choices[members[0]]);
  for (std::size_t t = 0; t < raw.size(); ++t) {
    const auto found = raw[t].find(plan.stored[t]);
    fixed.stored.push_back(found == raw[t].end() ? plan.stored[t] : found->second);
    for (tiling::Entry& entry : fixed.stored.back())
      if (entry.kind == tiling::Kind::partial) entry = tiling::replicate();
  }
  return fixed;
}

/// The paper's recursion (arXiv 1805.04170, section 5.2) with exact bytes: each cut is decided by itself, on the mesh
/// of the cuts up to it.
Found cut_by_cut(const Setting& setting, const Rules& rules, std::string_view strategy, RawTilings& raw) {
  const tiling::Mesh& whole = setting.costs.mesh();
  const std::size_t cuts = whole.cuts.size();
  Fixed fixed{{}, std::vector<Choices>(setting.model.members.size()), std::vector<Tiling>(rules.entries.size())};
  Found result;
  for (std::size_t cut = std::min<std::size_t>(1, cuts); cut <= cuts; ++cut) {
    MoveCosts costs(tiling::prefix(whole, static_cast<int>(cut)));
    const Setting part{setting.model, costs, setting.pins, setting.table_entries};
    fixed.open.assign(cut, 0);
    if (cut > 0) fixed.open.back() = 1;
    result = cheapest(part, make_domain(setting.model, rules, costs.mesh(), setting.pins, fixed, &raw), strategy);
    if (!result.found) return result;
    fixed = as_fixed(setting, result.plan, raw);
  }
  return result;
}

/// Decides neighbouring cuts anew, two at a time, all others fixed, as long as that helps.
void improve(const Setting& setting, const Rules& rules, Found& found, RawTilings raw) {
  const std::size_t cuts = setting.costs.mesh().cuts.size();
  const std::string strategy = found.plan.strategy;
  for (std::size_t without = 0, first = 0; without + 1 < cuts; ++without, first = (first + 1) % (cuts - 1)) {
    Fixed fixed = as_fixed(setting, found.plan, raw);
    fixed.open.assign(cuts, 0);
    fixed.open[first] = fixed.open[first + 1] = 1;
    RawTilings other_raw;
    const Domain domain = make_domain(setting.model, rules, setting.costs.mesh(), setting.pins, fixed, &other_raw);
    Found other = search(setting, domain, found.plan.bytes, strategy);
    if (!other.found || other.plan.bytes >= found.plan.bytes) continue;
    found = std::move(other);
    raw = std::move(other_raw);
    without = 0;
  }
}

/// The cheapest plan of a strategy; on meshes of many cuts the one found cut by cut.
Found named(const Setting& setting, const std::string& strategy) {
  const Rules rules = make_rules(setting.model, strategy);
  if (strategy != "kcut" && is_small(setting, rules))
    return cheapest(setting, make_domain(setting.model, rules, setting.costs.mesh(), setting.pins), strategy);
  RawTilings raw;
  return cut_by_cut(setting, rules, strategy, raw);
}

void add_choices(const Model& model, const Plan& plan, Domain& domain) {
  for (std::size_t v = 0; v < model.members.size(); ++v) {
    const Choices& choices = plan.choices[model.members[v][0]];
    auto& list = domain.choices[v];
    if (std::find(list.begin(), list.end(), choices) == list.end()) list.push_back(choices);
  }
}

/// The best of the named strategies' plans.
Found best_named(const Setting& setting) {
  Found best;
  for (const std::string& strategy : strategies()) {
    if (strategy == "auto") continue;
    Found other = named(setting, strategy);
    if (other.found && (!best.found || other.plan.bytes < best.plan.bytes)) best = std::move(other);
  }
  return best;
}

Found as_auto(Found found, std::int64_t bound) {
  found.plan.strategy = "auto";
  found.bound = std::min(bound, found.plan.bytes);
  found.optimal = found.bound == found.plan.bytes;
  return found;
}

/// The best plan over all cuts jointly. Nothing above `known`, the best named plan, need be looked at. Where that is
/// better than all plans that leave no rank without work, its choices are admitted too.
Found optimal(const Setting& setting, const Rules& rules, const Found& known) {
  const std::int64_t incumbent = known.found ? known.plan.bytes : never;
  Domain domain = make_domain(setting.model, rules, setting.costs.mesh(), setting.pins);
  Found result = search(setting, domain, incumbent, "auto");
  if (result.found || !known.found) return result;
  if (!result.optimal) return as_auto(known, result.bound); // cut short before it found anything better
  add_choices(setting.model, known.plan, domain);
  result = search(setting, domain, incumbent, "auto");
  if (result.found) return result;
  ensure(!result.optimal, "the search misses a plan it was given");
  return as_auto(known, result.bound);
}

/// No plan on a mesh moves less than the best one on its leading cuts: where ranks that differ in later cuts only are
/// taken for one, each move becomes one that brings in no more. Idle choices are admitted where they may be forced.
std::int64_t bound_of_leading_cuts(const Setting& setting, const Rules& rules) {
  const tiling::Mesh& whole = setting.costs.mesh();
  for (int cuts = static_cast<int>(whole.cuts.size()) - 1; cuts > 0; --cuts) {
    MoveCosts costs(tiling::prefix(whole, cuts));
    const Setting part{setting.model, costs, setting.pins, setting.table_entries};
    if (!is_small(part, rules)) continue;
    Domain domain = make_domain(setting.model, rules, costs.mesh(), setting.pins);
    for (std::size_t v = 0; v < domain.choices.size(); ++v)
      if (!can_be_busy(setting.model, rules, static_cast<int>(v), whole))
        domain.choices[v].insert(domain.choices[v].end(), domain.idle[v].begin(), domain.idle[v].end());
    return search(part, domain, never, "auto").bound;
  }
  return 0;
}

/// A good plan on a mesh of too many cuts for `optimal`: the best of the named ones and of the recursion over cuts,
/// improved two cuts at a time unless there are so many ranks that pricing moves takes too long.
Found good(const Setting& setting, const Rules& rules, Found known) {
  RawTilings raw;
  Found found = cut_by_cut(setting, rules, "auto", raw);
  if (found.found && tiling::ranks(setting.costs.mesh()) <= most_ranks_improved)
    improve(setting, rules, found, std::move(raw));
  if (!found.found || (known.found && known.plan.bytes < found.plan.bytes)) found = std::move(known);
  return found.found ? as_auto(std::move(found), bound_of_leading_cuts(setting, rules)) : found;
}

Found automatic(const Setting& setting) {
  const Rules rules = make_rules(setting.model, "auto");
  Found known = best_named(setting);
  return is_small(setting, rules) ? optimal(setting, rules, known) : good(setting, rules, std::move(known));
}

} // namespace

const std::vector<std::string>& strategies() {
  static const std::vector<std::string> names = {"auto", "data", "model", "owt", "kcut"};
  return names;
}

Plan make_plan(const Graph& graph, const tiling::Mesh& mesh, const Options& options) {
  const std::vector<std::string>& known = strategies();
  if (std::find(known.begin(), known.end(), options.strategy) == known.end())
    fail("parallel.strategy: name of a strategy, got \"{}\" expected {}. {}", options.strategy, fmt::join(known, ", "),
         config::suggestion(options.strategy, known));
  const Model model = make_model(graph);
  const Pins pins = parse_pins(model, mesh, options);
  MoveCosts costs(mesh);
  const Setting setting{model, costs, pins, options.table_entries};
  Found result = options.strategy == "auto" ? automatic(setting) : named(setting, options.strategy);
  if (!result.found) fail_pins(options);
  if (options.strategy == "auto") {
    const auto bound = static_cast<double>(std::max<std::int64_t>(result.bound, 1));
    result.plan.status = result.optimal ? Status::optimal : Status::bounded;
    result.plan.gap = result.optimal ? 0 : (static_cast<double>(result.plan.bytes) - bound) / bound;
  }
  return result.plan;
}

} // namespace soybean::plan
