#pragma once
// A proven lower bound on the price of a problem, and which values can not be part of a plan below a given limit.
// Sequential reweighted message passing (Kolmogorov, "A new look at reweighted message passing", TPAMI 2015) over the
// terms: each keeps its stored tiling and the sharing of copies inside, so no table over several nodes is ever made.
// Called inside src/plan only.
#include "plan/problem.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace soybean::plan {

/// A way in which a tensor can come about: what is stored and which copies that cost something are made.
struct Outcome {
  int stored;                       ///< index into Term::candidates
  std::vector<std::int32_t> copies; ///< indices into Term::tilings
};

class Relaxation {
public:
  /// Only plans that cost at most `limit` are wanted; values that can be in none are excluded as the bound rises.
  Relaxation(const Problem& problem, std::int64_t limit);
  ~Relaxation();

  void lower_limit(std::int64_t limit);
  /// Passes messages over all variables, forth and back. Integer arithmetic, so the same everywhere.
  void sweep();
  /// No plan is cheaper; `never` or more: there is none at or below the limit.
  std::int64_t bound() const;
  /// Per variable the values not excluded, ascending.
  const std::vector<std::vector<int>>& values() const;
  /// No plan in which the variable has that value is cheaper.
  std::int64_t bound(int variable, int value) const;
  /// Those that could be part of a plan of at most that price.
  std::vector<std::vector<int>> values(std::int64_t price) const;
  /// A term's outcomes that could be part of a plan of at most that price with these values (ascending, per variable);
  /// nothing where there are more than `most`, or some node needs the tensor in several tilings at once.
  std::optional<std::vector<Outcome>> outcomes(std::size_t term, const std::vector<std::vector<int>>& within,
                                               std::int64_t price, std::size_t most);

private:
  class Sweeper;
  std::unique_ptr<Sweeper> sweeper_;
};

/// The outcomes that could be part of a plan of at most some price, worked out for a term when they are asked for. For
/// as long as the relaxation stays as it is.
class Outcomes {
public:
  Outcomes(Relaxation& relaxation, std::int64_t price);
  /// Nothing where there are more than `most`, or where they can not be told apart.
  const std::optional<std::vector<Outcome>>& of(std::size_t term, std::size_t most);

private:
  struct Known {
    std::size_t most;
    std::optional<std::vector<Outcome>> list;
  };
  Relaxation& relaxation_;
  std::int64_t price_;
  std::vector<std::vector<int>> within_;
  std::map<std::size_t, Known> known_; ///< by term
};

} // namespace soybean::plan
