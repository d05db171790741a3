#pragma once
// The search for plans: named strategies and the exact search over all cuts jointly.
#include "machine/time.hpp"
#include "plan/plan.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace soybean::plan {

struct Options {
  std::string strategy = "auto";           ///< auto (= optimal), data, model, owt, kcut
  std::map<std::string, std::string> pins; ///< tensor name → tiling text; where they come from is `pins_where`
  std::string pins_where = "parallel.pins";
  const machine::Setting* machine = nullptr; ///< of the mesh: the step is to take the least time there, else to move
                                             ///< the fewest bytes
  /// A rank may take no more memory; 0: no limit. `peak`: what the fullest one takes under a plan.
  std::int64_t memory = 0;
  std::function<std::int64_t(const graph::Graph&, const Plan&)> peak = {};
  std::string memory_where = "parallel.memory";
  std::int64_t most_price = 0;             ///< plans within the memory are looked for below this price; 0: of any
  std::int64_t table_entries = 16'000'000; ///< cap on one elimination table; beyond it prune and report the gap
};

/// Deterministic: same graph, mesh and options give the same plan everywhere. Throws Error (unknown strategy, a pin on
/// an unknown tensor or one no legal plan satisfies, no plan found within the memory).
Plan make_plan(const graph::Graph& graph, const tiling::Mesh& mesh, const Options& options);

/// Of plans that do not fit into the memory.
struct Shortfall {
  std::int64_t least = 0; ///< what the leanest one that was found takes; 0: none was looked at
  std::string largest;    ///< the tensors that take most of that
};

/// The same, but nothing where no plan is found within the memory and below the price.
std::optional<Plan> find_plan(const graph::Graph& graph, const tiling::Mesh& mesh, const Options& options,
                              Shortfall& shortfall);

/// `tried`: beside plans, what the leanest one is of; `hint`: what else can be done.
[[noreturn]] void refuse_memory(const Options& options, const Shortfall& shortfall, std::string_view tried,
                                std::string_view hint);

/// All strategies' names in the order reports list them.
const std::vector<std::string>& strategies();

} // namespace soybean::plan
