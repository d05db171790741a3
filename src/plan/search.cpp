#include "plan/search.hpp"

#include "base/error.hpp"
#include "plan/elimination.hpp"
#include "plan/relaxation.hpp"
#include "plan/term_factor.hpp"

#include <algorithm>
#include <numeric>

namespace soybean::plan {
namespace {

constexpr double most_work_per_entry = 64; // of the cap: keeps time in proportion to memory
constexpr int most_sweeps = 60;
constexpr std::size_t most_branched_terms = 20'000; ///< of all subproblems solved where elimination does not fit

std::vector<int> sizes_of(const Problem& problem) {
  std::vector<int> sizes;
  for (const auto& values : problem.values) sizes.push_back(static_cast<int>(values.size()));
  return sizes;
}

std::vector<int> sizes_of(const std::vector<std::vector<int>>& keep) {
  std::vector<int> sizes;
  for (const auto& values : keep) sizes.push_back(static_cast<int>(values.size()));
  return sizes;
}

/// What exact elimination would take if variables had that many values, tables of single terms included.
Order effort(const Problem& problem, const std::vector<int>& sizes) {
  std::vector<std::vector<int>> scopes;
  double table = 0, work = 0;
  for (const Term& term : problem.terms) {
    scopes.push_back(term_scope(term));
    double entries = 1;
    for (int v : scopes.back()) entries *= sizes[v];
    table = std::max(table, entries);
    work += entries * static_cast<double>(term.candidates.size());
  }
  Order order = elimination_order(sizes, scopes);
  order.largest_table = std::max(order.largest_table, table);
  order.work += work;
  return order;
}

bool fits(const Order& order, std::int64_t table_entries) {
  const auto cap = static_cast<double>(table_entries);
  return order.largest_table <= cap && order.work <= cap * most_work_per_entry;
}

Minimum minimise(const Problem& problem, const Order& order) {
  const std::vector<int> sizes = sizes_of(problem);
  std::vector<Factor> factors;
  for (const Term& term : problem.terms) factors.push_back(term_factor(term, sizes));
  return eliminate(sizes, std::move(factors), order);
}

/// Minimises over the values listed; the assignment is in the numbering of `problem`.
Solution minimise_over(const Problem& problem, const std::vector<std::vector<int>>& keep, const Order& order) {
  const Minimum minimum = minimise(restrict_values(problem, keep), order);
  Solution solution;
  if (minimum.cost >= infinite_cost) return solution;
  solution.found = true;
  solution.bytes = bytes_of(minimum.cost);
  for (std::size_t v = 0; v < keep.size(); ++v) solution.assignment.push_back(keep[v][minimum.assignment[v]]);
  return solution;
}

/// The `width` values of each variable with the lowest bounds, in ascending order.
std::vector<std::vector<int>> most_promising(const Relaxation& relaxation, std::size_t width) {
  std::vector<std::vector<int>> keep = relaxation.values();
  for (std::size_t v = 0; v < keep.size(); ++v) {
    if (keep[v].size() <= width) continue;
    const auto bound = [&](int value) { return relaxation.bound(static_cast<int>(v), value); };
    std::stable_sort(keep[v].begin(), keep[v].end(), [&](int a, int b) { return bound(a) < bound(b); });
    keep[v].resize(width);
    std::sort(keep[v].begin(), keep[v].end());
  }
  return keep;
}

std::size_t widest(const std::vector<std::vector<int>>& keep) {
  std::size_t width = 0;
  for (const auto& values : keep) width = std::max(width, values.size());
  return width;
}

/// The best plan among the most promising values: as many as the cap and `work` allow.
Solution beam(const Problem& problem, const Relaxation& relaxation, std::int64_t table_entries, double work) {
  for (std::size_t width = widest(relaxation.values()); width > 0; width = width * 3 / 4) {
    const auto keep = most_promising(relaxation, width);
    const Order order = effort(problem, sizes_of(keep));
    if ((fits(order, table_entries) && order.work <= work) || width == 1) return minimise_over(problem, keep, order);
  }
  return {};
}

Solution none_as_cheap() {
  Solution none;
  none.bound = never;
  none.optimal = true;
  return none;
}

/// A minimum over all that could be as cheap as the incumbent.
Solution proven(Solution solution, std::int64_t incumbent) {
  if (!solution.found || solution.bytes > incumbent) return none_as_cheap();
  solution.bound = solution.bytes;
  solution.optimal = true;
  return solution;
}

/// The variable to be fixed: of those with most combinations around them, the one that makes eliminating the others for
/// each of its values easiest. -1: none has a choice.
int best_to_fix(const Problem& problem, const std::vector<std::vector<int>>& alive) {
  constexpr std::size_t most_tried = 24;
  std::vector<double> around(alive.size(), 0);
  for (const Term& term : problem.terms) {
    double combinations = 1;
    for (const Link& link : term.links) combinations *= static_cast<double>(alive[link.variable].size());
    for (const Link& link : term.links) around[link.variable] += combinations;
  }
  std::vector<int> open;
  for (std::size_t v = 0; v < alive.size(); ++v)
    if (alive[v].size() > 1) open.push_back(static_cast<int>(v));
  std::stable_sort(open.begin(), open.end(), [&](int a, int b) { return around[a] > around[b]; });
  open.resize(std::min(open.size(), most_tried));
  int best = -1;
  double least = 0;
  for (int v : open) {
    std::vector<int> sizes = sizes_of(alive);
    sizes[v] = 1;
    const double work = effort(problem, sizes).work * static_cast<double>(alive[v].size());
    if (best >= 0 && work >= least) continue;
    best = v;
    least = work;
  }
  return best;
}

Solution search(const Problem& problem, const Limits& limits, int& branches);

/// Solves for every value of one variable in turn, the most promising first, as long as branches are left. `best` is a
/// plan known, with the problem's bound.
void branch(const Problem& problem, const Relaxation& relaxation, const Limits& limits, int& branches, Solution& best) {
  const std::vector<std::vector<int>>& alive = relaxation.values();
  const int v = best_to_fix(problem, alive);
  if (v < 0 || static_cast<int>(alive[v].size()) > branches) return;
  std::vector<int> order = alive[v];
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return relaxation.bound(v, a) < relaxation.bound(v, b); });
  branches -= static_cast<int>(order.size());
  std::int64_t bound = never; // the least of the parts'
  for (int value : order) {
    Limits part = limits;
    part.incumbent = std::min(limits.incumbent, best.bytes);
    if (relaxation.bound(v, value) > part.incumbent) continue;
    std::vector<std::vector<int>> keep = alive;
    keep[v] = {value};
    Solution solution = search(restrict_values(problem, keep), part, branches);
    bound = std::min(bound, solution.bound);
    if (!solution.found || solution.bytes >= best.bytes) continue;
    for (std::size_t u = 0; u < keep.size(); ++u) solution.assignment[u] = keep[u][solution.assignment[u]];
    best.assignment = std::move(solution.assignment);
    best.bytes = solution.bytes;
    best.found = true;
  }
  best.bound = std::max(best.bound, std::min(bound, std::min(best.bytes, limits.incumbent)));
}

Solution search(const Problem& problem, const Limits& limits, int& branches) {
  if (!problem.feasible) return none_as_cheap();
  std::vector<std::vector<int>> all;
  for (const auto& values : problem.values) {
    all.emplace_back(values.size());
    std::iota(all.back().begin(), all.back().end(), 0);
  }
  const double easy = limits.easy_work * static_cast<double>(problem.terms.size());
  if (const Order order = effort(problem, sizes_of(all)); order.work <= easy && fits(order, limits.table_entries))
    return proven(minimise_over(problem, all, order), limits.incumbent);
  Relaxation relaxation(problem, limits.incumbent);
  Solution best;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    const std::int64_t before = relaxation.bound();
    relaxation.sweep();
    if (relaxation.bound() >= never) return none_as_cheap();
    const Order order = effort(problem, sizes_of(relaxation.values()));
    const std::int64_t gain = relaxation.bound() - before;
    const std::int64_t slack = std::min(limits.incumbent, best.bytes) - relaxation.bound();
    const bool settled =
        sweep == most_sweeps - 1 || (sweep > 1 && gain <= std::min(relaxation.bound() / 4096, slack / 32));
    if (fits(order, limits.table_entries) && (order.work <= easy * (sweep + 1) || settled))
      return proven(minimise_over(problem, relaxation.values(), order), limits.incumbent);
    if (sweep == 1) { // a plan close to the bound lets it exclude more
      best = beam(problem, relaxation, limits.table_entries, easy);
      if (best.found) relaxation.lower_limit(best.bytes);
    }
    if (settled) break;
  }
  Solution wide = beam(problem, relaxation, limits.table_entries, 1e300);
  if (wide.found && wide.bytes < best.bytes) best = std::move(wide);
  best.bound = std::min(relaxation.bound(), std::min(best.bytes, limits.incumbent));
  if (best.bound < std::min(best.bytes, limits.incumbent)) branch(problem, relaxation, limits, branches, best);
  best.found = best.found && best.bytes <= limits.incumbent;
  best.optimal = best.found && best.bound == best.bytes;
  return best;
}

} // namespace

Solution solve(const Problem& problem, const Limits& limits) {
  int branches = static_cast<int>(most_branched_terms / std::max<std::size_t>(problem.terms.size(), 1));
  return search(problem, limits, branches);
}

} // namespace soybean::plan
