#include "plan/search.hpp"

#include "base/error.hpp"
#include "plan/elimination.hpp"
#include "plan/factors.hpp"
#include "plan/relaxation.hpp"

#include <algorithm>
#include <optional>

namespace soybean::plan {
namespace {

constexpr double most_work_per_entry = 128; // of the cap: keeps time in proportion to memory
constexpr int few_sweeps = 2, enough_sweeps = 8, most_sweeps = 60;
constexpr double most_work_of_sweeps = 1.5e8;       ///< beyond `enough_sweeps`
constexpr std::size_t most_branched_terms = 20'000; ///< of all subproblems solved where elimination does not fit

bool fits(const Order& order, std::int64_t table_entries) {
  const auto cap = static_cast<double>(table_entries);
  return order.largest_table <= cap && order.work <= cap * most_work_per_entry;
}

/// Minimises over all values of the factors.
Solution minimise(const Factors& factors, const Order& order) {
  const Minimum minimum = eliminate(factors.sizes(), factors.tables(), order);
  Solution solution;
  if (minimum.cost >= infinite_cost) return solution;
  solution.found = true;
  solution.bytes = bytes_of(minimum.cost);
  for (std::size_t v = 0; v < factors.values().size(); ++v)
    solution.assignment.push_back(factors.values()[v][minimum.assignment[v]]);
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
Solution beam(const Problem& problem, Relaxation& relaxation, const Limits& limits, double work) {
  const Outcomes outcomes = relaxation.outcomes();
  for (std::size_t width = widest(relaxation.values()); width > 0; width = width * 3 / 4) {
    const Factors factors(problem, most_promising(relaxation, width), outcomes, limits.whole_entries);
    const Order order = factors.order();
    if ((fits(order, limits.table_entries) && order.work <= work) || width == 1) return minimise(factors, order);
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
int best_to_fix(const Problem& problem, Relaxation& relaxation, const Limits& limits) {
  const std::vector<std::vector<int>>& alive = relaxation.values();
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
  const Outcomes outcomes = relaxation.outcomes();
  int best = -1;
  double least = 0;
  for (int v : open) {
    std::vector<std::vector<int>> keep = alive;
    keep[v].resize(1);
    const double work =
        Factors(problem, keep, outcomes, limits.whole_entries).order().work * static_cast<double>(alive[v].size());
    if (best >= 0 && work >= least) continue;
    best = v;
    least = work;
  }
  return best;
}

Solution search(const Problem& problem, const Limits& limits, int& branches);

/// Solves for every value of one variable in turn, the most promising first, as long as branches are left. `best` is a
/// plan known, with the problem's bound.
void branch(const Problem& problem, Relaxation& relaxation, const Limits& limits, int& branches, Solution& best) {
  const std::vector<std::vector<int>>& alive = relaxation.values();
  const int v = best_to_fix(problem, relaxation, limits);
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

/// Whether a problem is small enough, as it is or after some sweeps, to be eliminated.
struct Narrowed {
  bool none = false;              ///< nothing is as cheap as the incumbent
  std::optional<Factors> factors; ///< of what is left, if it is small enough
  Order order;
};

/// Fewer where each takes long.
int useful_sweeps(const Problem& problem) {
  double work = 0; // of one
  for (const Term& term : problem.terms) {
    std::size_t values = 0;
    for (const Link& link : term.links) values += problem.values[link.variable].size();
    work += static_cast<double>(values * term.candidates.size());
  }
  return static_cast<int>(std::clamp<double>(most_work_of_sweeps / work, enough_sweeps, most_sweeps));
}

/// Sweeps until elimination of what is left is easy, or no further sweep helps. `best`, if given, becomes a plan found
/// on the way, and what is not as cheap is excluded.
Narrowed narrow(const Problem& problem, const Limits& limits, Relaxation& relaxation, Solution* best = nullptr) {
  const double easy = limits.easy_work * static_cast<double>(problem.terms.size());
  const int last = limits.thorough ? useful_sweeps(problem) : few_sweeps;
  Narrowed result;
  std::int64_t before = 0;
  for (int sweeps = 0;; ++sweeps) {
    const std::int64_t gain = relaxation.bound() - before;
    const std::int64_t slack = std::min(limits.incumbent, best == nullptr ? never : best->bytes) - relaxation.bound();
    const bool settled = sweeps == last || (sweeps > 2 && gain <= std::min(relaxation.bound() / 4096, slack / 32));
    result.factors.emplace(problem, relaxation.values(), relaxation.outcomes(), limits.whole_entries);
    result.order = result.factors->order();
    const bool small = fits(result.order, limits.table_entries);
    if (small && (result.order.work <= easy * std::max(sweeps, 1) || (settled && limits.thorough))) return result;
    if (settled) break;
    if (sweeps == 2 && best != nullptr) {
      *best = beam(problem, relaxation, limits, easy); // a plan close to the bound lets it exclude more
      if (best->found) relaxation.lower_limit(best->bytes);
    }
    before = relaxation.bound();
    relaxation.sweep();
    result.none = relaxation.bound() >= never;
    if (result.none) break;
  }
  result.factors.reset();
  return result;
}

Solution search(const Problem& problem, const Limits& limits, int& branches) {
  if (!problem.feasible) return none_as_cheap();
  Relaxation relaxation(problem, limits.incumbent);
  Solution best;
  const Narrowed narrowed = narrow(problem, limits, relaxation, &best);
  if (narrowed.none) return none_as_cheap();
  if (narrowed.factors) return proven(minimise(*narrowed.factors, narrowed.order), limits.incumbent);
  if (!limits.thorough) {
    best.found = best.found && best.bytes <= limits.incumbent;
    best.bound = std::min(relaxation.bound(), std::min(best.bytes, limits.incumbent));
    return best;
  }
  Solution wide = beam(problem, relaxation, limits, 1e300);
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

Solution first_guess(const Problem& problem, const Limits& limits) {
  if (!problem.feasible) return {};
  Relaxation relaxation(problem, limits.incumbent);
  for (int sweep = 0; sweep < 3 && relaxation.bound() < never; ++sweep) relaxation.sweep();
  if (relaxation.bound() >= never) return {};
  return beam(problem, relaxation, limits, limits.easy_work / 8 * static_cast<double>(problem.terms.size()));
}

Outlook outlook(const Problem& problem, const Limits& limits) {
  Outlook result{never, false, {}};
  for (const auto& values : problem.values) result.least.emplace_back(values.size(), never);
  if (!problem.feasible) return result;
  Relaxation relaxation(problem, limits.incumbent);
  const Narrowed narrowed = narrow(problem, limits, relaxation);
  if (narrowed.none) return result;
  const std::vector<std::vector<int>>& keep = relaxation.values();
  std::vector<std::vector<std::int64_t>> least;
  if (narrowed.factors) least = least_per_value(narrowed.factors->sizes(), narrowed.factors->tables(), narrowed.order);
  for (std::size_t v = 0; v < keep.size(); ++v)
    for (std::size_t x = 0; x < keep[v].size(); ++x) {
      std::int64_t& bytes = result.least[v][keep[v][x]];
      bytes = narrowed.factors ? least[v][x] : relaxation.bound(static_cast<int>(v), keep[v][x]);
      result.bound = std::min(result.bound, bytes);
    }
  result.exact = narrowed.factors && result.bound < never;
  if (!narrowed.factors) result.bound = relaxation.bound();
  return result;
}

} // namespace soybean::plan
