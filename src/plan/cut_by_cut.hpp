#pragma once
// The recursion over cuts (arXiv 1805.04170, section 5.2) with exact bytes, and its improvement two cuts at a time.
// Called inside src/plan only.
#include "plan/setting.hpp"

namespace soybean::plan {

/// The cheapest plan of a domain whatever it costs; idle choices are admitted everywhere if there is none without.
Found cheapest(const Setting& setting, Domain domain, std::string_view strategy);

/// Decides each cut by itself, on the mesh of the cuts up to it. `raw` receives the plan's stored tilings before they
/// were normalised.
Found cut_by_cut(const Setting& setting, const Rules& rules, std::string_view strategy, RawTilings& raw);

/// Decides neighbouring cuts anew, two at a time, all others fixed, as long as that helps.
void improve(const Setting& setting, const Rules& rules, Found& found, RawTilings raw);

} // namespace soybean::plan
