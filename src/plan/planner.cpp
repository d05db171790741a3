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

namespace soybean::plan {
namespace {

using graph::Graph;
using graph::TensorId;
using tiling::Tiling;

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

Found named(const Setting& setting, std::string_view strategy) {
  const Rules rules = make_rules(setting.model, strategy);
  return cheapest(setting, make_domain(setting.model, rules, setting.costs.mesh(), setting.pins), strategy);
}

/// What a plan of the leading cuts fixes for the next one.
Prefix as_prefix(const Setting& setting, const Plan& plan, const std::vector<std::map<Tiling, Tiling>>& raw) {
  Prefix prefix;
  for (const auto& members : setting.model.members) prefix.choices.push_back(plan.choices[members[0]]);
  for (std::size_t t = 0; t < raw.size(); ++t) {
    const auto found = raw[t].find(plan.stored[t]);
    prefix.stored.push_back(found == raw[t].end() ? tiling::replicated(plan.mesh) : found->second);
  }
  return prefix;
}

/// The paper's recursion (arXiv 1805.04170, section 5.2) with exact bytes: each cut is decided by itself, on the mesh
/// of the cuts up to it.
Found cut_by_cut(const Setting& setting) {
  const Graph& graph = *setting.model.graph;
  const Rules rules = make_rules(setting.model, "kcut");
  const tiling::Mesh& whole = setting.costs.mesh();
  Prefix prefix{std::vector<Choices>(setting.model.members.size()), std::vector<Tiling>(graph.tensors.size())};
  Found result;
  const int cuts = static_cast<int>(whole.cuts.size());
  for (int cut = std::min(1, cuts); cut <= cuts; ++cut) {
    if (cuts == 0) return named(setting, "kcut");
    MoveCosts costs(tiling::prefix(whole, cut));
    const Setting part{setting.model, costs, setting.pins, setting.table_entries};
    std::vector<std::map<Tiling, Tiling>> raw;
    result = cheapest(part, extend_domain(setting.model, rules, costs.mesh(), prefix, setting.pins, raw), "kcut");
    if (!result.found) return result;
    prefix = as_prefix(setting, result.plan, raw);
  }
  return result;
}

Found by_name(const Setting& setting, const std::string& strategy) {
  return strategy == "kcut" ? cut_by_cut(setting) : named(setting, strategy);
}

void add_choices(const Model& model, const Plan& plan, Domain& domain) {
  for (std::size_t v = 0; v < model.members.size(); ++v) {
    const Choices& choices = plan.choices[model.members[v][0]];
    auto& list = domain.choices[v];
    if (std::find(list.begin(), list.end(), choices) == list.end()) list.push_back(choices);
  }
}

/// The best plan over all cuts jointly. The named strategies' plans come first: nothing above the best of them need be
/// looked at. Where one is better than all plans that leave no rank without work, its choices are admitted too.
Found optimal(const Setting& setting) {
  Found best;
  for (const std::string& strategy : strategies()) {
    if (strategy == "auto") continue;
    Found other = by_name(setting, strategy);
    if (other.found && (!best.found || other.plan.bytes < best.plan.bytes)) best = std::move(other);
  }
  const std::int64_t incumbent = best.found ? best.plan.bytes : never;
  Domain domain = make_domain(setting.model, make_rules(setting.model, "auto"), setting.costs.mesh(), setting.pins);
  Found result = search(setting, domain, incumbent, "auto");
  if (result.found || !best.found) return result;
  if (!result.optimal) { // cut short before it found anything better
    best.plan.strategy = "auto";
    best.bound = result.bound;
    best.optimal = best.bound == best.plan.bytes;
    return best;
  }
  add_choices(setting.model, best.plan, domain);
  result = search(setting, domain, incumbent, "auto");
  if (result.found) return result;
  ensure(!result.optimal, "the search misses a plan it was given");
  best.plan.strategy = "auto";
  best.bound = result.bound;
  best.optimal = best.bound == best.plan.bytes;
  return best;
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
  Found result = options.strategy == "auto" ? optimal(setting) : by_name(setting, options.strategy);
  if (!result.found) fail_pins(options);
  if (options.strategy == "auto") {
    const auto bound = static_cast<double>(std::max<std::int64_t>(result.bound, 1));
    result.plan.status = result.optimal ? Status::optimal : Status::bounded;
    result.plan.gap = result.optimal ? 0 : (static_cast<double>(result.plan.bytes) - bound) / bound;
  }
  return result.plan;
}

} // namespace soybean::plan
