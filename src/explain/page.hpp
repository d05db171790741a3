#pragma once
// A plan as one HTML page that needs nothing else: the network with its tilings, memory and time of a step, strategies
// and rank counts side by side. Hides the page's data and its template (src/explain/page). Called by soybean_plan.
#include "explain/costed.hpp"
#include "explain/sweep.hpp"

#include <string>
#include <vector>

namespace soybean::explain {

struct PageContent {
  const Subject& subject;
  const std::vector<Costed>& plans; ///< the one that is shown first, then those it is compared with
  std::vector<SweepPoint> sweep;
  double planning_seconds = 0;
  std::string version;
};

/// What the page draws: a JSON object.
std::string page_data(const PageContent& content);

/// The page. Names are data in it, never markup.
std::string page(const PageContent& content);

} // namespace soybean::explain
