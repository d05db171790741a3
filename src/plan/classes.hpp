#pragma once
// Plans up to the order of cuts that are alike (of equal parts and, where time counts, across the same links): "half of
// the cuts split the batch, half the features", whichever they are. There are few such classes where there are many
// plans (ten cuts in two: 66 instead of 59,049 ways of a product), and the least any member of a class can move bounds
// them all from below. Called inside src/plan only.
#include "plan/model.hpp"

#include <cstdint>
#include <vector>

namespace soybean::plan {

using Alike = std::vector<int>; ///< per cut of a mesh: cuts with equal numbers are alike, and so of equal parts

/// The representative of all that differ from it in the order of alike cuts only.
tiling::Tiling class_of(tiling::Tiling tiling, const Alike& alike);
Choices class_of(Choices choices, const Alike& alike);

/// All choice vectors of a representative's class, and how many there are.
std::vector<Choices> members(const Choices& representative, const Alike& alike);
double member_count(const Choices& representative, const Alike& alike);

/// Whether a list that goes on with `next` can still become a representative.
bool continues_class(const tiling::Tiling& list, const tiling::Entry& next, const Alike& alike);
bool continues_class(const Choices& list, ops::Choice next, const Alike& alike);

/// No move from a tiling of the class of `from` to one of the class of `to` (partial-free) receives fewer elements, all
/// ranks together: as if what a rank holds and what it needs always lay within each other, slices could always come
/// first and all-reduces last.
std::int64_t least_moved(const tiling::Mesh& mesh, const Shape& shape, const tiling::Tiling& from,
                         const tiling::Tiling& to);

} // namespace soybean::plan
