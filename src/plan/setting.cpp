#include "plan/setting.hpp"

#include "base/error.hpp"
#include "plan/step_time.hpp"

namespace soybean::plan {

void evaluate(const Setting& setting, Plan& plan) {
  evaluate(*setting.model.graph, plan);
  if (const machine::Setting* machine = setting.costs.machine()) {
    plan.objective = Objective::time;
    plan.nanoseconds = step_time(*machine, setting.model, plan);
  }
}

Found search(const Setting& setting, const Domain& domain, std::int64_t incumbent, std::string_view strategy,
             bool thorough) {
  const Problem problem = make_problem(setting.model, setting.costs, domain);
  const Solution solution =
      solve(problem, {.incumbent = incumbent, .table_entries = setting.table_entries, .thorough = thorough});
  Found result{solution.found, {}, solution.bound, solution.optimal};
  if (!solution.found) return result;
  result.plan = make_plan(problem, solution.assignment);
  result.plan.strategy = strategy;
  evaluate(setting, result.plan);
  ensure(result.plan.price() == solution.price, "the plan does not cost what the search says");
  return result;
}

bool is_few(double moves) {
  return moves <= 3e6;
}

} // namespace soybean::plan
