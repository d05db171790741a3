#pragma once
// Solving a problem: bound, exclude, eliminate; where even that would take too large a table, search the most promising
// values, then the values of one variable after the other (branch and bound), and report the bound. Called inside
// src/plan only.
#include "plan/problem.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace soybean::plan {

struct Limits {
  std::int64_t incumbent = never; ///< price of a plan known already: only plans at most as costly are wanted
  std::int64_t table_entries = 0; ///< of one elimination table
  double easy_work = 7e4;         ///< combinations per term, looked at in the time of a sweep: sooner than bounds
  double whole_entries = 4096;    ///< up to there the table of a term is made even where it could be split
  bool thorough = true;           ///< false: give up where a few sweeps do not suffice
};

struct Solution {
  bool found = false;          ///< false: nothing as cheap as the incumbent was found
  std::vector<int> assignment; ///< one value per variable
  std::int64_t price = never;
  std::int64_t bound = 0; ///< no plan of the problem is cheaper (where that is less than the incumbent)
  bool optimal = false;   ///< proven: the plan is the best; nothing found: there is none as cheap as the incumbent
};

Solution solve(const Problem& problem, const Limits& limits);

/// Prices up to here are near the least one.
constexpr std::int64_t near(std::int64_t least) {
  return least + least / 1024;
}

/// What plans with each value cost.
struct Outlook {
  std::int64_t bound = 0; ///< no plan of the problem is cheaper; `never`: none is as cheap as the incumbent
  bool exact = false;     ///< some plan costs exactly that
  /// Per variable and value: no plan with it is cheaper; more than the incumbent where it is in none as cheap.
  std::vector<std::vector<std::int64_t>> least;
  /// The same as far as one can tell: exact where it is near the bound, mostly right farther off, `never` where nothing
  /// is known. For what to look at first; proofs take `least`.
  std::vector<std::vector<std::int64_t>> reached;
};

/// What can be told of a problem without solving it.
class Forecast {
public:
  Forecast(const Problem& problem, const Limits& limits);
  ~Forecast();
  /// A plan found after a few sweeps, which may be far from the best; none where none was found at or below the
  /// incumbent.
  Solution guess();
  /// Where a plan of price `incumbent` is known by now. May be asked for again where a cheaper one is.
  Outlook outlook(std::int64_t incumbent);

private:
  struct Work;
  std::unique_ptr<Work> work_;
};

} // namespace soybean::plan
