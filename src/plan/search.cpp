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
constexpr double most_work_of_sweeps = 1.5e8; ///< beyond `enough_sweeps`
// Of all subproblems solved where elimination does not fit. Each takes the time of some hundred sweeps.
constexpr double most_branched_terms = 20'000, most_branched_work = 6e6;

bool fits(const Order& order, std::int64_t table_entries) {
  const auto cap = static_cast<double>(table_entries);
  return order.largest_table <= cap && order.work <= cap * most_work_per_entry;
}

/// Of one sweep of the relaxation: values × candidates.
double sweep_work(const Problem& problem) {
  double work = 1;
  for (const Term& term : problem.terms) {
    std::size_t values = 0;
    for (const Link& link : term.links) values += problem.values[link.variable].size();
    work += static_cast<double>(values * term.candidates.size());
  }
  return work;
}

/// Minimises over all values of the factors.
Solution minimise(const Factors& factors, const Order& order) {
  const Minimum minimum = eliminate(factors.sizes(), factors.tables(), order);
  Solution solution;
  if (minimum.cost >= infinite_cost) return solution;
  solution.found = true;
  solution.price = price_of(minimum.cost);
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
  Outcomes outcomes(relaxation, limits.incumbent);
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
  if (!solution.found || solution.price > incumbent) return none_as_cheap();
  solution.bound = solution.price;
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
  Outcomes outcomes(relaxation, limits.incumbent);
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
    part.incumbent = std::min(limits.incumbent, best.price);
    if (relaxation.bound(v, value) > part.incumbent) continue;
    std::vector<std::vector<int>> keep = alive;
    keep[v] = {value};
    Solution solution = search(restrict_values(problem, keep), part, branches);
    bound = std::min(bound, solution.bound);
    if (!solution.found || solution.price >= best.price) continue;
    for (std::size_t u = 0; u < keep.size(); ++u) solution.assignment[u] = keep[u][solution.assignment[u]];
    best.assignment = std::move(solution.assignment);
    best.price = solution.price;
    best.found = true;
  }
  best.bound = std::max(best.bound, std::min(bound, std::min(best.price, limits.incumbent)));
}

/// Fewer where each takes long.
int useful_sweeps(const Problem& problem) {
  return static_cast<int>(
      std::clamp(most_work_of_sweeps / sweep_work(problem), double{enough_sweeps}, double{most_sweeps}));
}

/// A part of a problem that is small enough to be eliminated: all plans of at most the price `cap`.
struct Part {
  std::int64_t cap;
  Factors factors;
  Order order;
};

/// Sweeps until so much is excluded that what is left, or what can be part of the cheaper half of it, is small. Each
/// such part is handed out; where the best plan is not in it, the next one is larger.
class Narrowing {
public:
  Narrowing(const Problem& problem, const Limits& limits)
      : problem_(problem),
        limits_(limits),
        relaxation_(problem, limits.incumbent),
        easy_(limits.easy_work * static_cast<double>(problem.terms.size())),
        last_(limits.thorough ? useful_sweeps(problem) : few_sweeps),
        proven_(-1) {}

  Relaxation& relaxation() { return relaxation_; }
  /// No plan is cheaper, as far as is known; `never`: none is as cheap as the incumbent or the best plan.
  std::int64_t bound() const { return std::max(proven_ + 1, relaxation_.bound()); }
  bool none() const { return bound() > limit(); }
  const Solution& best() const { return best_; }
  void lower_limit(std::int64_t incumbent) {
    limits_.incumbent = std::min(limits_.incumbent, incumbent);
    relaxation_.lower_limit(incumbent);
  }
  void sweep() {
    before_ = relaxation_.bound();
    relaxation_.sweep();
    ++sweeps_;
  }
  /// Takes the best plan of a part, which is above its cap.
  void learn(Solution solution, std::int64_t cap) {
    proven_ = cap;
    take(std::move(solution));
  }
  /// The same where plans are of no use but for what they cost.
  void learn(std::int64_t price, std::int64_t cap) {
    proven_ = cap;
    enough_ = std::min(enough_, price);
  }

  /// Nothing: no part is small enough, or nothing is left (`none`). `with_plan`: looks for a plan on the way, so that
  /// more can be excluded.
  std::optional<Part> next(bool with_plan) {
    for (; !none(); sweep()) {
      const std::int64_t gain = relaxation_.bound() - before_, slack = limit() - relaxation_.bound();
      const bool settled =
          sweeps_ >= last_ || (sweeps_ > 2 && gain <= std::min(relaxation_.bound() / 4096, slack / 32));
      if (std::optional<Part> part = small_part(settled && limits_.thorough, gain)) return part;
      if (settled) break;
      if (sweeps_ == 2 && with_plan) take(beam(problem_, relaxation_, limits_, easy_));
    }
    return {};
  }

private:
  std::int64_t limit() const { return std::min(limits_.incumbent, best_.price); }

  void take(Solution solution) {
    if (!solution.found || solution.price >= best_.price) return;
    best_ = std::move(solution);
    relaxation_.lower_limit(best_.price);
  }

  /// All that is left, or else what is known to hold the best plan, or else all below a cap that is closer to the
  /// bound; but not so close that the next sweep would be expected to exceed it.
  std::optional<Part> small_part(bool any, std::int64_t gain) {
    const std::int64_t bound = relaxation_.bound(), slack = limit() - bound;
    for (std::int64_t share = 1; share <= (sweeps_ < 3 ? 1 : 4); share *= 2) {
      const bool known = share > 1 && enough_ < limit();
      const std::int64_t cap = known ? std::min(limit(), near(enough_)) : bound + slack / share;
      if (cap <= proven_ || (share > 1 && !known && slack / share <= gain)) break;
      Outcomes outcomes(relaxation_, cap);
      Factors factors(problem_, relaxation_.values(cap), outcomes, limits_.whole_entries);
      Order order = factors.order();
      if (!fits(order, limits_.table_entries)) continue;
      if (order.work <= easy_ * std::max(sweeps_, 1) || (any && share == 1))
        return Part{cap, std::move(factors), std::move(order)};
      if (known) break;
    }
    return {};
  }

  const Problem& problem_;
  Limits limits_;
  Relaxation relaxation_;
  double easy_;
  int sweeps_ = 0, last_;
  std::int64_t before_ = 0;     ///< the relaxation's bound before the last sweep
  std::int64_t proven_;         ///< no plan costs so little
  std::int64_t enough_ = never; ///< there is one of so many
  Solution best_;
};

Solution search(const Problem& problem, const Limits& limits, int& branches) {
  if (!problem.feasible) return none_as_cheap();
  Narrowing narrowing(problem, limits);
  while (const std::optional<Part> part = narrowing.next(true)) {
    Solution solution = minimise(part->factors, part->order);
    if (solution.found && solution.price <= part->cap) return proven(std::move(solution), limits.incumbent);
    narrowing.learn(std::move(solution), part->cap);
  }
  Solution best = narrowing.best();
  if (narrowing.none()) return best.found ? proven(std::move(best), limits.incumbent) : none_as_cheap();
  Relaxation& relaxation = narrowing.relaxation();
  if (limits.thorough) {
    Solution wide = beam(problem, relaxation, limits, 1e300);
    if (wide.found && wide.price < best.price) best = std::move(wide);
  }
  best.bound = std::min(narrowing.bound(), std::min(best.price, limits.incumbent));
  const std::int64_t least = std::min(best.price, limits.incumbent);
  if (limits.thorough && best.bound < least - least / 64) // closer is close enough: branches take long
    branch(problem, relaxation, limits, branches, best);
  best.found = best.found && best.price <= limits.incumbent;
  best.optimal = best.found && best.bound == best.price;
  return best;
}

} // namespace

Solution solve(const Problem& problem, const Limits& limits) {
  const double terms = static_cast<double>(std::max<std::size_t>(problem.terms.size(), 1));
  int branches = static_cast<int>(std::min(most_branched_terms / terms, most_branched_work / sweep_work(problem)));
  return search(problem, limits, branches);
}

struct Forecast::Work {
  const Problem& problem;
  Limits limits;
  Narrowing narrowing;
  Work(const Problem& problem, const Limits& limits) : problem(problem), limits(limits), narrowing(problem, limits) {}
};

Forecast::Forecast(const Problem& problem, const Limits& limits) : work_(std::make_unique<Work>(problem, limits)) {}
Forecast::~Forecast() = default;

Solution Forecast::guess() {
  constexpr int sweeps = 2;
  if (!work_->problem.feasible) return {};
  for (int sweep = 0; sweep < sweeps && !work_->narrowing.none(); ++sweep) work_->narrowing.sweep();
  const std::int64_t least = work_->narrowing.bound();
  if (work_->narrowing.none() || work_->limits.incumbent - least < least / 8) return {};
  const double easy = work_->limits.easy_work / 8 * static_cast<double>(work_->problem.terms.size());
  return beam(work_->problem, work_->narrowing.relaxation(), work_->limits, easy);
}

Outlook Forecast::outlook(std::int64_t incumbent) {
  Outlook result{never, false, {}, {}};
  for (const auto& values : work_->problem.values) result.least.emplace_back(values.size(), never);
  result.reached = result.least;
  if (!work_->problem.feasible) return result;
  Narrowing& narrowing = work_->narrowing;
  narrowing.lower_limit(incumbent);
  Least found;
  std::int64_t cap = 0; // of the part that has the cheapest plan
  std::vector<std::vector<int>> keep;
  while (const std::optional<Part> part = narrowing.next(false)) {
    found = least_per_value(part->factors.sizes(), part->factors.tables(), part->order, part->cap, near(part->cap));
    keep = part->factors.values();
    cap = part->cap;
    result.exact = found.minimum <= cap;
    if (result.exact) break;
    narrowing.learn(found.minimum, cap);
  }
  if (narrowing.none()) return {never, false, std::move(result.least), std::move(result.reached)};
  const Relaxation& relaxation = narrowing.relaxation();
  result.bound = result.exact ? found.minimum : narrowing.bound();
  for (std::size_t v = 0; v < work_->problem.values.size(); ++v)
    for (int x : relaxation.values()[v])
      result.least[v][x] = std::max(result.bound, relaxation.bound(static_cast<int>(v), x));
  if (!result.exact) {
    result.reached = result.least;
    return result;
  }
  for (std::size_t v = 0; v < work_->problem.values.size(); ++v)
    for (std::size_t x = 0; x < keep[v].size(); ++x) {
      const std::int64_t price = found.per_value[v][x];
      result.reached[v][keep[v][x]] = price;
      // A plan above the cap may be cheaper than all that are made of the part's values.
      std::int64_t& least = result.least[v][keep[v][x]];
      if (least < never) least = std::max(least, std::min(price, cap + 1));
    }
  return result;
}

} // namespace soybean::plan
