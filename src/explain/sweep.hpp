#pragma once
// What plans move, and how long their steps take, over rank counts: points and their rows. Called by soybean_plan and
// by the page.
#include "simulate/step.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace soybean::explain {

/// One strategy's plan for one rank count.
struct SweepPlan {
  std::string strategy;
  std::int64_t bytes = 0;             ///< moved per step, all ranks together
  std::optional<simulate::Step> step; ///< where there is a machine
};

/// One rank count: the plan a run would take, data and model parallelism.
struct SweepPoint {
  int ranks = 0;
  std::int64_t batch = 0;
  std::string status; ///< what is proven of the first plan
  double planning_seconds = 0;
  std::array<SweepPlan, 3> plans;
};

/// The columns' names, and one point's row; widths are fixed so that rows can be printed as they come. `first`: the
/// sweep's first point, which efficiency refers to: samples per second and rank beside that one's.
std::string sweep_head(const SweepPoint& first);
std::string sweep_row(const SweepPoint& point, const SweepPoint& first);
/// The same as comma-separated values; figures of time are empty without a machine.
std::string sweep_csv_head();
std::string sweep_csv_row(const SweepPoint& point, const SweepPoint& first);

/// "1..1024": 1, 2, 4, … 1024 (the last one whatever it is); "1,2,6": those. Throws Error (`--sweep: …`) for all else,
/// numbers below 1 or above 2^20, and lists that do not ascend.
std::vector<int> read_rank_counts(const std::string& text);

} // namespace soybean::explain
