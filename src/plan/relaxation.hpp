#pragma once
// A proven lower bound on the bytes of a problem, and which values can not be part of a plan below a given limit.
// Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing", TPAMI 2015) over the
// terms: each keeps its stored tiling and the sharing of copies inside, so no table over several nodes is ever made.
// Called inside src/plan only.
#include "plan/problem.hpp"

#include <cstdint>
#include <vector>

namespace soybean::plan {

struct Relaxed {
  std::int64_t bound = 0; ///< no plan moves fewer bytes (`never` or more: there is none at or below the limit)
  /// Per variable and value: no plan with that value moves fewer bytes; `never` when it was excluded.
  std::vector<std::vector<std::int64_t>> bounds;
};

/// Excludes values whose bound exceeds `limit` bytes. Integer arithmetic throughout, so the same everywhere.
Relaxed relax(const Problem& problem, std::int64_t limit, int sweeps);

} // namespace soybean::plan
