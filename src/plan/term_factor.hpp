#pragma once
// A term as a table for elimination. Called inside src/plan only.
#include "plan/elimination.hpp"
#include "plan/problem.hpp"

namespace soybean::plan {

/// The variables a term's cost depends on: those of links whose tilings differ between values.
std::vector<int> term_scope(const Term& term);

/// The term's cost for all combinations of values of term_scope, the stored tiling minimised over.
Factor term_factor(const Term& term, const std::vector<int>& sizes);

} // namespace soybean::plan
