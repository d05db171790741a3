#pragma once
// When rows and columns of images are worth searching over. Called inside src/plan only.
//
// Where every rank can have a sample, splitting rows or columns hardly ever pays. Take a plan that does, and split the
// batch in their stead, everywhere (its shadow). Ranks hold as much as before, since blocks of either sum up to the
// same; they need no more, since there are no halos (but for rows that windows step over); and of what they need they
// can hold as much: over all ranks Σ min(x, y) of the sizes of blocks of rows, columns and samples is at most
// min(Σ x, Σ y). So no plan with rows or columns split moves fewer bytes than the class of its shadow can
// (classes.hpp), a bound the best plan without mostly comes within a few thousandths of.
#include "plan/setting.hpp"

namespace soybean::plan {

/// Rows and columns where there are fewer samples than ranks (of many ranks, or of many nodes, rows alone, of more
/// ranks still neither: the search would take too long), or pins ask for it.
Images images_to_split(const Setting& setting);

/// The same of the neighbourhood of a plan: where there are fewer samples than ranks, or it does split some.
Images images_to_split(const Model& model, const Plan& plan);

} // namespace soybean::plan
