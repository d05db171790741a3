#include "plan/setting.hpp"

#include "base/error.hpp"

namespace soybean::plan {

Found search(const Setting& setting, const Domain& domain, std::int64_t incumbent, std::string_view strategy,
             bool thorough) {
  const Problem problem = make_problem(setting.model, setting.costs, domain);
  const Solution solution =
      solve(problem, {.incumbent = incumbent, .table_entries = setting.table_entries, .thorough = thorough});
  Found result{solution.found, {}, solution.bound, solution.optimal};
  if (!solution.found) return result;
  result.plan = make_plan(problem, solution.assignment);
  result.plan.strategy = strategy;
  evaluate(*setting.model.graph, result.plan);
  ensure(result.plan.bytes == solution.bytes, "the plan does not cost what the search says");
  return result;
}

bool is_few(double moves) {
  return moves <= 3e6;
}

} // namespace soybean::plan
