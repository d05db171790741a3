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
  Domain domain = make_class_domain(setting.model, rules, mesh, setting.pins);
  for (std::size_t v = 0; v < also.size(); ++v) {
    const Choices representative = class_of(also[v], mesh);
    std::vector<Choices>& list = domain.choices[v];
    if (std::find(list.begin(), list.end(), representative) == list.end()) list.push_back(representative);
  }
  MoveCosts costs(mesh, Detail::classes);
  return make_problem(setting.model, costs, domain);
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

/// How many moves would have to be priced to search all members of the classes.
double moves_of(const Setting& setting, const Rules& rules, const Classes& classes) {
  const Model& model = setting.model;
  const Mesh& mesh = setting.costs.mesh();
  std::vector<double> values;
  for (const auto& list : classes) {
    values.push_back(0);
    for (const Choices& representative : list) values.back() += member_count(representative, mesh);
  }
  std::map<std::pair<Shape, std::vector<tiling::Entry>>, double> alike; // moves of equal tensors are priced once
  for (std::size_t t = 0; t < model.graph->tensors.size(); ++t) {
    const graph::Tensor& tensor = model.graph->tensors[t];
    double tilings = tensor.producer == graph::none ? 0 : values[model.variable[tensor.producer]];
    for (graph::NodeId n : tensor.consumers) tilings += values[model.variable[n]];
    const double stored = std::pow(static_cast<double>(rules.entries[t].size()), static_cast<double>(mesh.cuts.size()));
    double& moves = alike[{tensor.shape, rules.entries[t]}];
    moves = std::max(moves, tilings * stored);
  }
  double sum = 0;
  for (const auto& [key, moves] : alike) sum += moves;
  return sum;
}

/// The members of the classes, in the order in which rules list them.
Domain members_of(const Setting& setting, const Rules& rules, const Classes& classes,
                  const std::vector<Choices>& also) {
  const Mesh& mesh = setting.costs.mesh();
  Domain domain;
  domain.idle.resize(classes.size());
  for (std::size_t v = 0; v < classes.size(); ++v) {
    std::vector<Choices>& list = domain.choices.emplace_back();
    const bool extra =
        v < also.size() && std::find(classes[v].begin(), classes[v].end(), class_of(also[v], mesh)) != classes[v].end();
    for (const Choices& representative : classes[v])
      for (Choices& member : members(representative, mesh)) {
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

} // namespace

Found joint(const Setting& setting, const Rules& rules, std::int64_t incumbent, std::string_view strategy,
            const std::vector<Choices>& also) {
  const Problem problem = class_problem(setting, rules, also);
  Found best{false, {}, 0, false};
  std::int64_t limit = incumbent, lowest = 0;        // what plans have to be below, what none is below
  const auto look_at = [&](const Classes& classes) { // false: there is too much to see
    if (!is_few(moves_of(setting, rules, classes))) return false;
    Domain domain = members_of(setting, rules, classes, also);
    add_stored(setting.model, rules, setting.costs.mesh(), setting.pins, domain);
    // Named plans and those that are nearly proven are not worth a long search.
    const bool enough = lowest == 0 || (best.found && (strategy != "auto" || limit - lowest <= lowest / 64));
    Found found = search(setting, domain, limit, strategy, !enough);
    best.bound = found.bound;
    best.optimal = found.optimal;
    if (found.found) {
      best = std::move(found);
      limit = best.plan.bytes;
    }
    return true;
  };
  // What a guess at the classes comes to limits how costly classes need be looked at.
  const Solution guess = first_guess(problem, {incumbent, setting.table_entries});
  if (guess.found)
    look_at(select(problem, [&](std::size_t v, std::size_t x) { return guess.assignment[v] == static_cast<int>(x); }));
  const Outlook classes = outlook(problem, {limit, setting.table_entries});
  if (classes.bound > limit) return {false, {}, never, true};
  // Most often the best plan is hardly above the bound and made of the few classes that come close to it.
  lowest = classes.bound;
  best.optimal = false;
  for (const std::int64_t cap : {lowest + lowest / 1024, lowest + lowest / 8, never}) {
    const std::int64_t within = std::min(cap, limit); // all plans of so many bytes are in the domain
    if (!look_at(select(problem, [&](std::size_t v, std::size_t x) { return classes.least[v][x] <= within; }))) break;
    lowest = std::max(lowest, std::min(best.bound, within));
    const bool exact = best.optimal;
    best.optimal = exact && limit <= within && (best.found || limit == incumbent);
    if (best.optimal || !exact || within == limit) break;
  }
  best.bound = best.found ? std::min(lowest, limit) : lowest;
  return best;
}

} // namespace soybean::plan
