#include "plan/search.hpp"

#include "base/error.hpp"
#include "plan/elimination.hpp"
#include "plan/relaxation.hpp"
#include "plan/term_factor.hpp"

#include <algorithm>
#include <numeric>

namespace soybean::plan {
namespace {

constexpr double easy_work = 1e6;          // below this eliminating is quicker than bounding first
constexpr double most_work_per_entry = 64; // of the cap: keeps time in proportion to memory
constexpr int most_sweeps = 24;

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

std::vector<std::vector<int>> not_excluded(const Relaxed& relaxed) {
  std::vector<std::vector<int>> keep;
  for (const std::vector<std::int64_t>& bounds : relaxed.bounds) {
    keep.emplace_back();
    for (std::size_t x = 0; x < bounds.size(); ++x)
      if (bounds[x] < never) keep.back().push_back(static_cast<int>(x));
  }
  return keep;
}

/// The `width` values of each variable with the lowest bounds, in ascending order.
std::vector<std::vector<int>> most_promising(const Relaxed& relaxed, std::size_t width) {
  std::vector<std::vector<int>> keep = not_excluded(relaxed);
  for (std::size_t v = 0; v < keep.size(); ++v) {
    if (keep[v].size() <= width) continue;
    const std::vector<std::int64_t>& bounds = relaxed.bounds[v];
    std::stable_sort(keep[v].begin(), keep[v].end(), [&](int a, int b) { return bounds[a] < bounds[b]; });
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

/// The best plan among the most promising values: as many as the cap (and `work`) allow.
Solution beam(const Problem& problem, const Relaxed& relaxed, std::int64_t table_entries, double work) {
  for (std::size_t width = widest(not_excluded(relaxed)); width > 0; width = width * 3 / 4) {
    const auto keep = most_promising(relaxed, width);
    const Order order = effort(problem, sizes_of(keep));
    if ((fits(order, table_entries) && order.work <= work) || width == 1) return minimise_over(problem, keep, order);
  }
  return {};
}

} // namespace

Solution solve(const Problem& problem, const Limits& limits) {
  if (!problem.feasible) return {};
  const Order whole = effort(problem, sizes_of(problem));
  std::vector<std::vector<int>> keep;
  for (const auto& values : problem.values) {
    keep.emplace_back(values.size());
    std::iota(keep.back().begin(), keep.back().end(), 0);
  }
  Solution best;
  if (whole.work <= easy_work && fits(whole, limits.table_entries)) {
    best = minimise_over(problem, keep, whole);
    if (best.bytes > limits.incumbent) return {};
    best.bound = best.bytes;
    best.optimal = best.found;
    return best;
  }
  std::int64_t limit = limits.incumbent;
  Relaxed relaxed = relax(problem, limit, most_sweeps);
  if (relaxed.bound >= never) return {};
  best = beam(problem, relaxed, limits.table_entries, easy_work);
  if (best.found && best.bytes < limit) {
    limit = best.bytes;
    relaxed = relax(problem, limit, most_sweeps);
    ensure(relaxed.bound <= limit, "a bound above a plan's cost");
  }
  keep = not_excluded(relaxed);
  const Order order = effort(problem, sizes_of(keep));
  if (fits(order, limits.table_entries)) {
    best = minimise_over(problem, keep, order);
    if (!best.found || best.bytes > limits.incumbent) return {};
    best.bound = best.bytes;
    best.optimal = true;
    return best;
  }
  Solution wide = beam(problem, relaxed, limits.table_entries, 1e300);
  if (wide.found && wide.bytes < best.bytes) best = std::move(wide);
  best.bound = std::min(relaxed.bound, best.bytes);
  best.optimal = best.found && best.bound == best.bytes;
  return best;
}

} // namespace soybean::plan
