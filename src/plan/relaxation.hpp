#pragma once
// A proven lower bound on the bytes of a problem, and which values can not be part of a plan below a given limit.
// Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing", TPAMI 2015) over the
// terms: each keeps its stored tiling and the sharing of copies inside, so no table over several nodes is ever made.
// Called inside src/plan only.
#include "plan/problem.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace soybean::plan {

/// A way in which a tensor can come about: what is stored and which copies that move bytes are made.
struct Outcome {
  int stored;                       ///< index into Term::candidates
  std::vector<std::int32_t> copies; ///< indices into Term::tilings
};

using Outcomes = std::vector<std::optional<std::vector<Outcome>>>; ///< per term

class Relaxation {
public:
  /// Only plans of at most `limit` bytes are wanted; values that can be in none are excluded as the bound rises.
  Relaxation(const Problem& problem, std::int64_t limit);
  ~Relaxation();

  void lower_limit(std::int64_t limit);
  /// Passes messages over all variables, forth and back. Integer arithmetic, so the same everywhere.
  void sweep();
  /// No plan moves fewer bytes; `never` or more: there is none at or below the limit.
  std::int64_t bound() const;
  /// Per variable the values not excluded, ascending.
  const std::vector<std::vector<int>>& values() const;
  /// No plan in which the variable has that value moves fewer bytes.
  std::int64_t bound(int variable, int value) const;
  /// Those that could be part of a plan of at most so many bytes.
  std::vector<std::vector<int>> values(std::int64_t bytes) const;
  /// Per term the outcomes that could be part of a plan of at most so many bytes; nothing where there are too many to
  /// tell them apart.
  Outcomes outcomes(std::int64_t bytes);

private:
  class Sweeper;
  std::unique_ptr<Sweeper> sweeper_;
};

} // namespace soybean::plan
