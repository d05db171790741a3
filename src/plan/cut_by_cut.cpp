#include "plan/cut_by_cut.hpp"

namespace soybean::plan {
namespace {

using tiling::Tiling;

/// What a plan decides, for a search that leaves some cuts open. Tensors that are passed on unstored have the entries
/// they are passed in, where those could be stored.
Fixed as_fixed(const Setting& setting, const Plan& plan, const RawTilings& raw) {
  Fixed fixed;
  for (const auto& members : setting.model.members) fixed.choices.push_back(plan.choices[members[0]]);
  for (std::size_t t = 0; t < raw.size(); ++t) {
    const auto found = raw[t].find(plan.stored[t]);
    fixed.stored.push_back(found == raw[t].end() ? plan.stored[t] : found->second);
    for (tiling::Entry& entry : fixed.stored.back())
      if (entry.kind == tiling::Kind::partial) entry = tiling::replicate();
  }
  return fixed;
}

} // namespace

Found cheapest(const Setting& setting, Domain domain, std::string_view strategy) {
  Found result = search(setting, domain, never, strategy);
  if (result.found) return result;
  for (std::size_t v = 0; v < domain.choices.size(); ++v)
    domain.choices[v].insert(domain.choices[v].end(), domain.idle[v].begin(), domain.idle[v].end());
  return search(setting, domain, never, strategy);
}

Found cut_by_cut(const Setting& setting, const Rules& rules, std::string_view strategy, RawTilings& raw) {
  const tiling::Mesh& whole = setting.costs.mesh();
  const std::size_t cuts = whole.cuts.size();
  Fixed fixed{{}, std::vector<Choices>(setting.model.members.size()), std::vector<Tiling>(rules.entries.size())};
  Found result;
  for (std::size_t cut = std::min<std::size_t>(1, cuts); cut <= cuts; ++cut) {
    MoveCosts costs(tiling::prefix(whole, static_cast<int>(cut)));
    if (setting.costs.machine() == nullptr) costs.charge(setting.costs.per_held_byte()); // one per byte, not nanosecond
    const Setting part{setting.model, costs, setting.pins, setting.table_entries};
    fixed.open.assign(cut, 0);
    if (cut > 0) fixed.open.back() = 1;
    result = cheapest(part, make_domain(setting.model, rules, costs.mesh(), setting.pins, fixed, &raw), strategy);
    if (!result.found) return result;
    fixed = as_fixed(setting, result.plan, raw);
  }
  evaluate(setting, result.plan);
  return result;
}

void improve(const Setting& setting, const Rules& rules, Found& found, RawTilings raw) {
  const std::size_t cuts = setting.costs.mesh().cuts.size();
  const std::string strategy = found.plan.strategy;
  for (std::size_t without = 0, first = 0; without + 1 < cuts; ++without, first = (first + 1) % (cuts - 1)) {
    Fixed fixed = as_fixed(setting, found.plan, raw);
    fixed.open.assign(cuts, 0);
    fixed.open[first] = fixed.open[first + 1] = 1;
    RawTilings other_raw;
    const Domain domain = make_domain(setting.model, rules, setting.costs.mesh(), setting.pins, fixed, &other_raw);
    Found other = search(setting, domain, found.plan.price(), strategy);
    if (!other.found || other.plan.price() >= found.plan.price()) continue;
    found = std::move(other);
    raw = std::move(other_raw);
    without = 0;
  }
}

} // namespace soybean::plan
