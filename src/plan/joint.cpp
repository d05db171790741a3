#include "plan/joint.hpp"

#include "plan/classes.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace soybean::plan {
namespace {

using graph::TensorId;
using tiling::Mesh;
using tiling::Tiling;

/// The problem in which choices and tilings stand for their classes.
Problem class_problem(const Setting& setting, const Rules& rules, const std::vector<Choices>& also) {
  const Mesh& mesh = setting.costs.mesh();
  Domain domain = make_class_domain(setting.model, rules, mesh, setting.costs.alike(), setting.pins);
  for (std::size_t v = 0; v < also.size(); ++v) {
    const Choices representative = class_of(also[v], setting.costs.alike());
    std::vector<Choices>& list = domain.choices[v];
    if (std::find(list.begin(), list.end(), representative) == list.end()) list.push_back(representative);
  }
  MoveCosts costs(mesh, Detail::classes, setting.costs.machine());
  costs.charge(setting.costs.per_held_byte());
  return make_problem(setting.model, costs, domain);
}

/// How many lists of so many options per cut there are.
double all_of(std::size_t options, const Setting& setting) {
  return std::pow(static_cast<double>(options), static_cast<double>(setting.costs.mesh().cuts.size()));
}

/// Classes of each variable, representatives of all that is to be searched.
using Classes = std::vector<std::vector<Choices>>;

/// Those of which `wanted(variable, value)` holds.
template<class F>
Classes select(const Problem& problem, const F& wanted) {
  Classes classes(problem.values.size());
  for (std::size_t v = 0; v < classes.size(); ++v)
    for (std::size_t x = 0; x < problem.values[v].size(); ++x)
      if (wanted(v, x))
        classes[v].insert(classes[v].end(), problem.equivalent[v][x].begin(), problem.equivalent[v][x].end());
  return classes;
}

constexpr double few_moves = 3e4;   // looked at in less time than classes are
constexpr double quick_moves = 3e5; // beyond, proofs go no farther than is enough

/// How many moves would have to be priced to search so many values per variable.
double moves_of(const Setting& setting, const Rules& rules, const std::vector<double>& values) {
  const Model& model = setting.model;
  std::map<std::pair<Shape, std::vector<tiling::Entry>>, double> alike; // moves of equal tensors are priced once
  for (std::size_t t = 0; t < model.graph->tensors.size(); ++t) {
    const graph::Tensor& tensor = model.graph->tensors[t];
    double tilings = tensor.producer == graph::none ? 0 : values[model.variable[tensor.producer]];
    for (graph::NodeId n : tensor.consumers) tilings += values[model.variable[n]];
    const double stored = all_of(rules.entries[t].size(), setting);
    double& moves = alike[{tensor.shape, rules.entries[t]}];
    moves = std::max(moves, tilings * stored);
  }
  double sum = 0;
  for (const auto& [key, moves] : alike) sum += moves;
  return sum;
}

double moves_of(const Setting& setting, const Rules& rules, const Classes& classes) {
  std::vector<double> values;
  values.reserve(classes.size());
  for (const auto& list : classes) {
    values.push_back(0);
    for (const Choices& representative : list) values.back() += member_count(representative, setting.costs.alike());
  }
  return moves_of(setting, rules, values);
}

/// The members of the classes, in the order in which rules list them.
Domain members_of(const Setting& setting, const Rules& rules, const Classes& classes,
                  const std::vector<Choices>& also) {
  const Mesh& mesh = setting.costs.mesh();
  Domain domain;
  domain.idle.resize(classes.size());
  for (std::size_t v = 0; v < classes.size(); ++v) {
    std::vector<Choices>& list = domain.choices.emplace_back();
    const bool extra = v < also.size() && std::find(classes[v].begin(), classes[v].end(),
                                                    class_of(also[v], setting.costs.alike())) != classes[v].end();
    for (const Choices& representative : classes[v])
      for (Choices& member : members(representative, setting.costs.alike())) {
        if (extra && leaves_idle(setting.model, static_cast<int>(v), mesh, member) && member != also[v]) continue;
        list.push_back(std::move(member));
      }
    const auto place = [&](ops::Choice choice) {
      return std::find(rules.choices[v].begin(), rules.choices[v].end(), choice) - rules.choices[v].begin();
    };
    std::sort(list.begin(), list.end(), [&](const Choices& a, const Choices& b) {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                          [&](ops::Choice x, ops::Choice y) { return place(x) < place(y); });
    });
  }
  return domain;
}

/// All that the rules allow, `also` included.
Domain whole_domain(const Setting& setting, const Rules& rules, const std::vector<Choices>& also) {
  Domain domain = make_domain(setting.model, rules, setting.costs.mesh(), setting.pins);
  for (std::size_t v = 0; v < also.size(); ++v) {
    std::vector<Choices>& list = domain.choices[v];
    if (std::find(list.begin(), list.end(), also[v]) == list.end()) list.push_back(also[v]);
    std::erase(domain.idle[v], also[v]);
  }
  return domain;
}

/// Searches classes in rounds. What is known grows with each: a plan, and what no plan is below.
class Rounds {
public:
  Rounds(const Setting& setting, const Rules& rules, std::int64_t incumbent, std::string_view strategy,
         const std::vector<Choices>& also)
      : setting_(setting),
        rules_(rules),
        strategy_(strategy),
        also_(also),
        problem_(class_problem(setting, rules, also)),
        limit_(incumbent) {}

  Found run() {
    // What a guess at the classes comes to limits how costly classes need be looked at.
    Forecast forecast(problem_, {limit_, setting_.table_entries});
    const Solution guess = forecast.guess();
    const auto guessed = [&](std::size_t v, std::size_t x) { return guess.assignment[v] == static_cast<int>(x); };
    if (guess.found && guess.price <= limit_) look_at(select(problem_, guessed), limit_, false);
    const std::int64_t before = limit_;
    Outlook outlook = forecast.outlook(limit_);
    if (outlook.bound > limit_) return {false, {}, never, true};
    lowest_ = outlook.bound;
    const auto below = [&](const std::vector<std::vector<std::int64_t>>& least, std::int64_t price) {
      return select(problem_, [&](std::size_t v, std::size_t x) { return least[v][x] <= price; });
    };
    const auto moves_below = [&](const std::vector<std::vector<std::int64_t>>& least, std::int64_t price) {
      return moves_of(setting_, rules_, below(least, price));
    };
    // Most often the best plan is hardly above the bound and made of the few classes that come close to it.
    const bool any = strategy_ == "auto";
    const bool worth = any || !best_.found || moves_below(outlook.reached, near(lowest_)) <= quick_moves / 4;
    if (moves_below(outlook.reached, limit_) > few_moves && worth)
      look_at(below(outlook.reached, near(lowest_)), limit_, false);
    const double quick = any ? quick_moves : quick_moves / 4;
    const std::int64_t goal = moves_below(outlook.reached, limit_) <= quick ? limit_ : enough(limit_);
    if (lowest_ < goal && goal < before) outlook = forecast.outlook(goal);
    lowest_ = std::max(lowest_, std::min(outlook.bound, goal));
    if (lowest_ < goal && (any || goal == limit_)) prove(below(outlook.least, goal), goal);
    best_.bound = best_.found ? std::min(lowest_, best_.plan.price()) : lowest_;
    best_.optimal = optimal_ || (best_.found && best_.bound == best_.plan.price());
    return std::move(best_);
  }

private:
  /// A plan of that price is good enough where nothing is below what this returns.
  static std::int64_t enough(std::int64_t price) { return price - price / 64; }

  /// The best plan of the classes, if there is one at or below `limit`.
  Found look_at(const Classes& classes, std::int64_t limit, bool thorough) {
    if (!is_few(moves_of(setting_, rules_, classes))) return {};
    Domain domain = members_of(setting_, rules_, classes, also_);
    add_stored(setting_.model, rules_, setting_.costs.mesh(), setting_.pins, domain);
    Found found = search(setting_, domain, limit, strategy_, thorough);
    if (!found.found) return found;
    best_ = found;
    limit_ = best_.plan.price();
    return found;
  }

  /// Raises what is proven towards `goal`; all plans below that are among the classes.
  void prove(const Classes& classes, std::int64_t goal) {
    const std::int64_t before = limit_;
    const Found found = look_at(classes, goal, true);
    if (found.bound == 0) return; // too much to look at
    optimal_ = found.optimal && (found.found || goal == before);
    lowest_ = std::max(lowest_, std::min(found.bound, goal));
  }

  const Setting& setting_;
  const Rules& rules_;
  std::string_view strategy_;
  const std::vector<Choices>& also_;
  const Problem problem_;
  Found best_;
  std::int64_t limit_;      ///< the best plan's price, or what plans have to be at or below
  std::int64_t lowest_ = 0; ///< no plan is below
  bool optimal_ = false;    ///< the best plan is; without one: there is none
};

} // namespace

Found joint(const Setting& setting, const Rules& rules, std::int64_t incumbent, std::string_view strategy,
            const std::vector<Choices>& also) {
  std::vector<double> values;
  values.reserve(rules.choices.size());
  for (const auto& choices : rules.choices) values.push_back(all_of(choices.size(), setting));
  if (moves_of(setting, rules, values) <= few_moves)
    return search(setting, whole_domain(setting, rules, also), incumbent, strategy);
  return Rounds(setting, rules, incumbent, strategy, also).run();
}

} // namespace soybean::plan
