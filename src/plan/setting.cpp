#include "plan/setting.hpp"

#include "base/error.hpp"
#include "plan/step_time.hpp"

namespace soybean::plan {

namespace {

/// Of tensors that are kept in a tiling of their own, and of their copies.
std::int64_t penalty(const Setting& setting, const Plan& plan) {
  const graph::Graph& graph = *setting.model.graph;
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const graph::Tensor& tensor = graph.tensors[t];
    if (is_free_source(tensor) || tensor.previous != graph::none || tensor.role == graph::Role::metric) continue;
    const TensorMoves all = moves(graph, plan, static_cast<graph::TensorId>(t));
    if (!all.stored) continue;
    const auto add = [&](const tiling::Tiling& held) {
      sum += setting.costs.holding(largest_block_bytes(tensor, held, plan.mesh));
    };
    if (tensor.producer != graph::none || tensor.next != graph::none) add(plan.stored[t]);
    for (const tiling::Tiling& need : all.needed) add(need);
  }
  return sum;
}

} // namespace

void evaluate(const Setting& setting, Plan& plan) {
  evaluate(*setting.model.graph, plan);
  plan.penalty = setting.costs.per_held_byte() > 0 ? penalty(setting, plan) : 0;
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
