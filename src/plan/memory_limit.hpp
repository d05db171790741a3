#pragma once
// Plans that fit into a rank's memory. Called inside src/plan only.
#include "plan/planner.hpp"
#include "plan/setting.hpp"

#include <functional>
#include <vector>

namespace soybean::plan {

/// `plan(setting)` is the best plan; where it takes more memory than the options allow, the best of those that are
/// found within it: the search is repeated with a charge on what is held (a Lagrange multiplier), as low as will do.
/// The bound stays that of the search without a charge. `others`: plans that do as well if they fit. Where no plan is
/// found that fits, `shortfall` says by how much.
Found within_memory(const Setting& setting, const Options& options, const std::function<Found()>& plan,
                    const std::function<std::vector<Found>()>& others, Shortfall& shortfall);

} // namespace soybean::plan
