#pragma once
// The search as a sum of terms, one per tensor, over variables, one per group of twin nodes. A variable's values are
// choice vectors. A term says what a tensor costs given the values of the nodes that make and use it; its stored tiling
// is minimised over inside. Hides how tilings become numbers. Called inside src/plan only.
#include "plan/domain.hpp"
#include "plan/model.hpp"
#include "plan/move_costs.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <vector>

namespace soybean::plan {

constexpr std::int64_t never = std::int64_t{1} << 56; ///< price of what can not be

/// What one variable has to do with one tensor, per value: ids into Term::tilings.
struct Link {
  int variable = -1;
  std::vector<std::int32_t> produced;            ///< empty if it does not produce the tensor
  std::vector<std::vector<std::int32_t>> needed; ///< one column per distinct need
};

struct Term {
  graph::TensorId tensor = graph::none;
  std::vector<tiling::Tiling> tilings;    ///< all that are produced or needed
  std::vector<tiling::Tiling> candidates; ///< for the stored one; a free source has a single one, empty
  std::vector<Link> links;                ///< by ascending variable
  bool may_pass = false;                  ///< its only consumer may take it exactly as produced, never stored
  std::vector<std::int64_t> from, to;     ///< prices [tiling][candidate] of produced → stored, stored → needed
  std::vector<std::int64_t> held;         ///< bytes of the fullest rank, per tiling
  std::vector<std::int64_t> held_stored;  ///< the same per candidate; 0 for a free source
};

struct Problem {
  const Model* model = nullptr;
  tiling::Mesh mesh;
  std::vector<std::vector<Choices>> values;                  ///< per variable, equivalent ones left out
  std::vector<std::vector<std::vector<Choices>>> equivalent; ///< per variable and value, all it stands for
  std::vector<std::vector<std::int64_t>> computing;          ///< per variable and value: its price; empty: all are 0
  std::vector<Term> terms;
  std::vector<int> kinds; ///< per term: equal numbers promise equal costs for equal values
  bool feasible = true;   ///< false: some variable has no value left
};

/// Drops choices that no neighbour can satisfy, turns to idle ones where none is left, merges those no tensor can tell
/// apart, and prices the rest. Where costs are those of classes, so are values and tilings.
Problem make_problem(const Model& model, MoveCosts& costs, const Domain& domain);

/// A plan that gives every variable one of its values and every tensor the best stored tiling for it. Costs are not
/// filled in.
Plan make_plan(const Problem& problem, const std::vector<int>& assignment);

/// The cost of a term when variables have the given values (only those of its links are read). `stored` is the index
/// of the candidate, -1 when the tensor passes unstored, in tiling `passed`. Its price is `never` when impossible.
struct TermCost {
  std::int64_t price = never, held = never;
  int stored = -1;
  std::int32_t passed = -1;
};
TermCost term_cost(const Term& term, const std::vector<int>& assignment);

/// What `kinds` becomes when variables are restricted to the values listed.
std::vector<int> kinds_among(const Problem& problem, const std::vector<std::vector<int>>& keep);

/// Restricts the variables to the values listed (ascending indices).
Problem restrict_values(const Problem& problem, const std::vector<std::vector<int>>& keep);

} // namespace soybean::plan
