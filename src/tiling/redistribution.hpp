#pragma once
// Redistribution: the cheapest sequence of collectives that turns one tiling of a tensor into another, and its exact
// bytes. The planner asks for `bytes`, lowering for `path`; both come from the same search, so they can not disagree.
//
// Rules (DESIGN §3): while anything is partial only reduce-scatter, all-reduce and slice are moves; cut i may
// reduce-scatter or slice to split(d) only if no later cut splits d; one exchange, in which each rank receives exactly
// the elements it needs and lacks, comes last; what it ends in may have halos. Bytes are bytes received, summed over
// all ranks: reduce-scatter of local terms of b bytes in a group of p: (p-1)·b per group; all-reduce twice that;
// exchange: what is lacking.
#include "tiling/tiling.hpp"

#include <string>
#include <vector>

namespace soybean::tiling {

enum class StepKind : std::uint8_t { slice, reduce_scatter, all_reduce, exchange };
std::string_view to_string(StepKind kind);

/// One step over one cut (slice, reduce_scatter, all_reduce: `cut`) or over the whole mesh (exchange: cut = -1).
/// Reduce-scatters of one dim over neighbouring cuts are one over all of them: `cuts` from `cut` on, their parts
/// nested.
struct Step {
  StepKind kind;
  int cut = -1;
  int cuts = 1;
  Tiling from, to;
  std::int64_t elements = 0; ///< elements received, summed over all ranks; 0 for a slice
  bool operator==(const Step&) const = default;
};

/// What is moved: a tensor's shape and the unit of each of its dims (empty: all 1). New splits use units[d],
/// or the target's unit where units[d] would change the target's blocks; but where a cut splits the dim already and
/// that unit would change its blocks, the unit of that cut. (So a step may restate another cut's unit, never its
/// blocks.)
struct Moved {
  const Shape& shape;
  const Shape& units;
};

/// The cheapest steps from `from` to `to` (normalised; `to` may be partial only where `from` is, on the same cuts).
/// Empty when they are equal. Among equally cheap sequences: fewest steps, then a fixed order. An exchange that lacks
/// nothing is a slice-only local copy and is emitted as exchange with elements = 0.
std::vector<Step> path(const Mesh& mesh, const Moved& tensor, const Tiling& from, const Tiling& to);

/// Elements received by all ranks together along `path`: the planner's cost (times the element size).
std::int64_t elements_moved(const Mesh& mesh, const Moved& tensor, const Tiling& from, const Tiling& to);

/// Of an exchange from `from` to `to` (neither partial): the elements that ranks receive from others with another
/// coordinate on one of the first `cuts` cuts, summed over all ranks. With all cuts that is all of it.
std::int64_t elements_from_outside(const Mesh& mesh, const Shape& shape, const Tiling& from, const Tiling& to,
                                   int cuts);

/// Who sends what in an exchange: for `rank`, the boxes it receives from each peer (and copies from itself: peer ==
/// rank). `from` and `to` have no partial entries. The source of an element held by several ranks is the holder that
/// agrees with the receiver on every cut `from` replicates: it is the nearest one in the mesh whichever links are fast,
/// and receivers of different coordinates turn to different holders. So there is at most one piece per pair of ranks.
/// Boxes tile exactly needed(rank); those from peers tile needed \ held.
struct Piece {
  int peer;
  Box box; ///< global, logical
};
struct ExchangePieces {
  std::vector<Piece> receive; ///< ordered by peer, then by box
  std::vector<Piece> send;    ///< mirror image: what peers receive from this rank, ordered by peer, then by box
};
ExchangePieces exchange_pieces(const Mesh& mesh, const Shape& shape, const Tiling& from, const Tiling& to, int rank);

} // namespace soybean::tiling
