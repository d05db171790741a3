#include "plan/planner.hpp"

#include "base/error.hpp"
#include "config/table.hpp"
#include "plan/cut_by_cut.hpp"
#include "plan/images.hpp"
#include "plan/joint.hpp"
#include "plan/memory_limit.hpp"
#include "plan/pins.hpp"
#include "plan/words.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace soybean::plan {
namespace {

using graph::Graph;

constexpr int most_ranks_improved = 64;

/// The cheapest plan of a strategy; on meshes of many cuts the one found cut by cut.
Found named(const Setting& setting, const std::string& strategy, Images images) {
  const Rules rules = make_rules(setting.model, strategy, images);
  if (strategy != "kcut") {
    Found found = joint(setting, rules, never, strategy);
    if (found.found) return found;
  }
  RawTilings raw;
  return cut_by_cut(setting, rules, strategy, raw);
}

/// The same, or nothing where it is proven to cost at least `price`.
Found named_below(const Setting& setting, const std::string& strategy, Images images, std::int64_t price) {
  if (strategy == "kcut" || price == never) return named(setting, strategy, images);
  if (price == 0) return {};
  Found cheaper = joint(setting, make_rules(setting.model, strategy, images), price - 1, strategy);
  return cheaper.optimal ? cheaper : named(setting, strategy, images);
}

/// The best of the named strategies' plans. Those that are known to be dearer than others before all is known of them
/// have no entry in `prices`; times are all there, since without the machine nobody can add them.
Found best_named(const Setting& setting, Images images, std::map<std::string, std::int64_t>& prices) {
  Found best;
  for (const std::string strategy : {"data", "kcut", "owt", "model"}) {
    const bool all = !best.found || setting.costs.machine() != nullptr;
    Found other = named_below(setting, strategy, images, all ? never : best.plan.price());
    if (other.found) prices[strategy] = other.plan.price();
    if (other.found && (!best.found || other.plan.price() < best.plan.price())) best = std::move(other);
  }
  return best;
}

/// Plans of all named strategies, as if they were found by "auto".
std::vector<Found> all_named(const Setting& setting) {
  std::vector<Found> plans;
  for (const std::string& strategy : strategies()) {
    if (strategy == "auto") continue;
    plans.push_back(named(setting, strategy, images_to_split(setting)));
    plans.back().plan.strategy = "auto";
  }
  return plans;
}

std::vector<Choices> choices_of(const Model& model, const Plan& plan) {
  std::vector<Choices> choices;
  choices.reserve(model.members.size());
  for (const auto& members : model.members) choices.push_back(plan.choices[members[0]]);
  return choices;
}

/// The best plan over all cuts jointly. Nothing above `known`, the best named plan, need be looked at. Where that is
/// better than all plans that leave no rank without work, its choices are admitted too.
Found optimal(const Setting& setting, const Rules& rules, const Found& known) {
  const std::int64_t incumbent = known.found ? known.plan.price() : never;
  Found result = joint(setting, rules, incumbent, "auto");
  if (result.found || !result.optimal || !known.found) return result;
  result = joint(setting, rules, incumbent, "auto", choices_of(setting.model, known.plan));
  ensure(result.found || !result.optimal, "the search misses a plan it was given");
  return result;
}

Found as_auto(Found found, std::int64_t bound) {
  found.plan.strategy = "auto";
  found.bound = std::min(bound, found.plan.price());
  found.optimal = found.bound == found.plan.price();
  return found;
}

Found automatic(const Setting& setting, std::map<std::string, std::int64_t>& others) {
  const Images images = images_to_split(setting);
  const Rules rules = make_rules(setting.model, "auto", images);
  Found known = best_named(setting, images, others);
  Found best = optimal(setting, rules, known);
  const std::int64_t bound = best.bound;
  if (best.found) return as_auto(std::move(best), bound);
  RawTilings raw;
  Found found = cut_by_cut(setting, rules, "auto", raw);
  if (found.found && tiling::ranks(setting.costs.mesh()) <= most_ranks_improved)
    improve(setting, rules, found, std::move(raw));
  if (!found.found || (known.found && known.plan.price() < found.plan.price())) found = std::move(known);
  return found.found ? as_auto(std::move(found), bound) : found;
}

} // namespace

const std::vector<std::string>& strategies() {
  static const std::vector<std::string> names = {"auto", "data", "model", "owt", "kcut"};
  return names;
}

std::optional<Plan> find_plan(const Graph& graph, const tiling::Mesh& mesh, const Options& options,
                              Shortfall& shortfall) {
  const std::vector<std::string>& known = strategies();
  if (std::find(known.begin(), known.end(), options.strategy) == known.end())
    fail("parallel.strategy: name of a strategy, got \"{}\" expected {}. {}", options.strategy, fmt::join(known, ", "),
         config::suggestion(options.strategy, known));
  const Model model = make_model(graph);
  const Pins pins = parse_pins(model, mesh, options);
  MoveCosts costs(mesh, Detail::exact, options.machine);
  const Setting setting{model, costs, pins, options.table_entries};
  std::map<std::string, std::int64_t> others;
  Found result = within_memory(
      setting, options,
      [&] {
        if (options.strategy != "auto") return named(setting, options.strategy, images_to_split(setting));
        std::map<std::string, std::int64_t> charged; // prices that nobody asks for
        return automatic(setting, costs.per_held_byte() > 0 ? charged : others);
      },
      [&] { return options.strategy == "auto" ? all_named(setting) : std::vector<Found>(); }, shortfall);
  if (!result.found && shortfall.least > 0) return std::nullopt;
  if (!result.found) fail_pins(options);
  if (options.pins.empty()) result.plan.others = std::move(others);
  if (options.strategy == "auto") {
    const auto bound = static_cast<double>(std::max<std::int64_t>(result.bound, 1));
    result.plan.status = result.optimal ? Status::optimal : Status::bounded;
    result.plan.gap = result.optimal ? 0 : (static_cast<double>(result.plan.price()) - bound) / bound;
  }
  return std::move(result.plan);
}

Plan make_plan(const Graph& graph, const tiling::Mesh& mesh, const Options& options) {
  Shortfall shortfall;
  std::optional<Plan> plan = find_plan(graph, mesh, options, shortfall);
  if (!plan) refuse_memory(options, shortfall, "", "more ranks, a smaller data.batch or more train.microbatches");
  return std::move(*plan);
}

void refuse_memory(const Options& options, const Shortfall& shortfall, std::string_view tried, std::string_view hint) {
  fail("{}, got {} for a rank expected at least {}, what the leanest plan found takes{} ({} among it). take {}",
       options.memory_where, bytes_text(options.memory), bytes_text(shortfall.least), tried, shortfall.largest, hint);
}

} // namespace soybean::plan
