#pragma once
// What all searches for one graph on one mesh share, and the simplest of them: over all of one domain. Called inside
// src/plan only.
#include "plan/problem.hpp"
#include "plan/search.hpp"
#include "plan/strategy.hpp"

#include <cstdint>
#include <string_view>

namespace soybean::plan {

struct Setting {
  const Model& model;
  MoveCosts& costs; ///< with the mesh
  const Pins& pins;
  std::int64_t table_entries; ///< cap on one elimination table
};

/// A plan and how it compares with the best possible one under its strategy.
struct Found {
  bool found = false;
  Plan plan;
  std::int64_t bound = 0;
  bool optimal = false; ///< proven; without a plan: that there is none as cheap as was asked for
};

/// Fills in what the plan costs, by the setting's objective too.
void evaluate(const Setting& setting, Plan& plan);

/// The best plan of a domain at most as costly as `incumbent`; not `thorough`: if that is found quickly.
Found search(const Setting& setting, const Domain& domain, std::int64_t incumbent, std::string_view strategy,
             bool thorough = true);

/// Whether so many moves can be priced in a few seconds.
bool is_few(double moves);

} // namespace soybean::plan
